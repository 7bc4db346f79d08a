//! Numbers spelled in German and in English.

/// The largest number that is spelled.
pub const LARGEST: u32 = 999_999;

const GERMAN: &str = "null eins zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn \
     vierzehn fünfzehn sechzehn siebzehn achtzehn neunzehn";
const GERMAN_TENS: &str = "- - zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig";
const ENGLISH: &str = "zero one two three four five six seven eight nine ten eleven twelve thirteen \
     fourteen fifteen sixteen seventeen eighteen nineteen";
const ENGLISH_TENS: &str = "- - twenty thirty forty fifty sixty seventy eighty ninety";

/// The `n`-th word, from 0.
fn word(words: &'static str, n: u32) -> &'static str {
    words.split_whitespace().nth(n as usize).unwrap_or_default()
}

/// A number below 1000 as the start of a longer word, in which one is `ein`.
fn german_part(n: u32) -> String {
    let (hundreds, rest) = (n / 100, n % 100);
    let unit = |n: u32| if n == 1 { "ein" } else { word(GERMAN, n) };
    let mut spelled = match hundreds {
        0 => String::new(),
        _ => format!("{}hundert", unit(hundreds)),
    };
    spelled += &match (rest / 10, rest % 10) {
        (0, 0) => String::new(),
        (0, 1) => "ein".to_owned(),
        (0 | 1, _) => word(GERMAN, rest).to_owned(),
        (tens, 0) => word(GERMAN_TENS, tens).to_owned(),
        (tens, ones) => format!("{}und{}", unit(ones), word(GERMAN_TENS, tens)),
    };
    spelled
}

/// In German, one word: `21` is `einundzwanzig`.
///
/// # Panics
/// Above [`LARGEST`].
pub fn german(n: u32) -> String {
    assert!(n <= LARGEST, "{n} is not spelled");
    let (thousands, rest) = (n / 1000, n % 1000);
    let mut spelled = match thousands {
        0 => String::new(),
        _ => format!("{}tausend", german_part(thousands)),
    };
    if rest > 0 || n == 0 {
        spelled += &if n == 0 { word(GERMAN, 0).to_owned() } else { german_part(rest) };
        // At the end of a number, one is `eins`: but not of 11 or 21.
        if rest % 100 == 1 {
            spelled.push('s');
        }
    }
    spelled
}

/// In English, words apart: `121` is `one hundred twenty one`.
///
/// # Panics
/// Above [`LARGEST`].
pub fn english(n: u32) -> Vec<&'static str> {
    assert!(n <= LARGEST, "{n} is not spelled");
    let below_thousand = |n: u32| {
        let (hundreds, rest) = (n / 100, n % 100);
        let mut words = Vec::new();
        if hundreds > 0 {
            words.extend([word(ENGLISH, hundreds), "hundred"]);
        }
        match (rest / 10, rest % 10) {
            (0, 0) => {}
            (0 | 1, _) => words.push(word(ENGLISH, rest)),
            (tens, 0) => words.push(word(ENGLISH_TENS, tens)),
            (tens, ones) => words.extend([word(ENGLISH_TENS, tens), word(ENGLISH, ones)]),
        }
        words
    };
    if n == 0 {
        return vec![word(ENGLISH, 0)];
    }
    let mut words = Vec::new();
    if n >= 1000 {
        words.extend(below_thousand(n / 1000));
        words.push("thousand");
    }
    words.extend(below_thousand(n % 1000));
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spelled_as_people_do() {
        for (n, expected_german, expected_english) in [
            (0, "null", "zero"),
            (1, "eins", "one"),
            (11, "elf", "eleven"),
            (16, "sechzehn", "sixteen"),
            (21, "einundzwanzig", "twenty one"),
            (30, "dreißig", "thirty"),
            (67, "siebenundsechzig", "sixty seven"),
            (100, "einhundert", "one hundred"),
            (101, "einhunderteins", "one hundred one"),
            (111, "einhundertelf", "one hundred eleven"),
            (999, "neunhundertneunundneunzig", "nine hundred ninety nine"),
            (1000, "eintausend", "one thousand"),
            (1001, "eintausendeins", "one thousand one"),
            (7317, "siebentausenddreihundertsiebzehn", "seven thousand three hundred seventeen"),
            (21_081, "einundzwanzigtausendeinundachtzig", "twenty one thousand eighty one"),
            (101_000, "einhunderteintausend", "one hundred one thousand"),
            (
                912_345,
                "neunhundertzwölftausenddreihundertfünfundvierzig",
                "nine hundred twelve thousand three hundred forty five",
            ),
        ] {
            assert_eq!(german(n), expected_german);
            assert_eq!(english(n).join(" "), expected_english);
        }
    }

    #[test]
    fn no_two_numbers_are_spelled_alike() {
        let mut all: Vec<(String, String)> =
            (0..10_000).map(|n| (german(n), english(n).join(" "))).collect();
        all.sort();
        all.dedup_by(|a, b| a.0 == b.0 || a.1 == b.1);
        assert_eq!(all.len(), 10_000);
    }
}
