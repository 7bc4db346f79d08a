//! A reader of `agent.json`: numbers, words, lists and objects.

use crate::error::{Error, damaged};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(f64),
    /// A word.
    Text(String),
    /// A list.
    List(Vec<Json>),
    /// Keys and values.
    Object(Vec<(String, Json)>),
}

/// Nested values of a file; deeper ones are refused.
const DEPTH: usize = 32;

impl Json {
    /// Reads a whole text.
    ///
    /// # Errors
    /// When it is not JSON.
    pub fn read(text: &str) -> Result<Self, Error> {
        let mut reader = Reader { bytes: text.as_bytes(), at: 0 };
        let value = reader.value(0)?;
        match reader.peek() {
            None => Ok(value),
            Some(_) => Err(reader.wrong("expected its end")),
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Self> {
        match self {
            Self::Object(pairs) => {
                pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// The number of a key.
    ///
    /// # Errors
    /// When it is missing, or not a number.
    pub fn number(&self, key: &str) -> Result<f64, Error> {
        match self.get(key) {
            Some(Self::Number(number)) => Ok(*number),
            _ => Err(damaged(format!("agent.json: `{key}` is not a number"))),
        }
    }

    /// The flag of a key.
    ///
    /// # Errors
    /// When it is missing, or not a flag.
    pub fn flag(&self, key: &str) -> Result<bool, Error> {
        match self.get(key) {
            Some(Self::Bool(flag)) => Ok(*flag),
            _ => Err(damaged(format!("agent.json: `{key}` is not true or false"))),
        }
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn wrong(&self, expected: &str) -> Error {
        damaged(format!("agent.json is damaged at byte {}: {expected}", self.at))
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let is = self.peek() == Some(byte);
        self.at += usize::from(is);
        is
    }

    fn value(&mut self, depth: usize) -> Result<Json, Error> {
        if depth > DEPTH {
            return Err(self.wrong("values are nested too deeply"));
        }
        match self.peek() {
            Some(b'{') => {
                self.at += 1;
                let mut pairs = Vec::new();
                if self.take(b'}') {
                    return Ok(Json::Object(pairs));
                }
                loop {
                    self.peek();
                    let key = self.text()?;
                    if !self.take(b':') {
                        return Err(self.wrong("expected a colon"));
                    }
                    pairs.push((key, self.value(depth + 1)?));
                    if self.take(b'}') {
                        return Ok(Json::Object(pairs));
                    }
                    if !self.take(b',') {
                        return Err(self.wrong("expected a comma"));
                    }
                }
            }
            Some(b'[') => {
                self.at += 1;
                let mut list = Vec::new();
                if self.take(b']') {
                    return Ok(Json::List(list));
                }
                loop {
                    list.push(self.value(depth + 1)?);
                    if self.take(b']') {
                        return Ok(Json::List(list));
                    }
                    if !self.take(b',') {
                        return Err(self.wrong("expected a comma"));
                    }
                }
            }
            Some(b'"') => self.text().map(Json::Text),
            _ => self.word(),
        }
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> Result<Json, Error> {
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"+-.".contains(byte);
        let rest = &self.bytes[self.at..];
        let n = rest.iter().position(|byte| !is_part(byte)).unwrap_or(rest.len());
        let word = std::str::from_utf8(&rest[..n]).unwrap_or_default();
        let value = match word {
            "true" => Json::Bool(true),
            "false" => Json::Bool(false),
            "null" => Json::Null,
            _ => match word.parse::<f64>() {
                Ok(number) if number.is_finite() => Json::Number(number),
                _ => return Err(self.wrong("expected a value")),
            },
        };
        self.at += n;
        Ok(value)
    }

    fn text(&mut self) -> Result<String, Error> {
        if self.bytes.get(self.at) != Some(&b'"') {
            return Err(self.wrong("expected a word in quotation marks"));
        }
        self.at += 1;
        let mut bytes = Vec::new();
        loop {
            match self.bytes.get(self.at) {
                None => return Err(self.wrong("a word does not end")),
                Some(b'"') => break,
                Some(b'\\') => {
                    // No name of ours has other escapes.
                    self.at += 1;
                    match self.bytes.get(self.at) {
                        Some(b'n') => bytes.push(b'\n'),
                        Some(b't') => bytes.push(b'\t'),
                        Some(byte @ (b'"' | b'\\' | b'/')) => bytes.push(*byte),
                        Some(b'u') => {
                            self.at += 4;
                            bytes.push(b'?');
                        }
                        _ => return Err(self.wrong("unknown escape")),
                    }
                }
                Some(byte) => bytes.push(*byte),
            }
            self.at += 1;
        }
        self.at += 1;
        String::from_utf8(bytes).map_err(|_| self.wrong("a word is not UTF-8"))
    }
}
