//! Shakespeare's plays as characters.

use std::collections::BTreeSet;
use std::path::Path;

use burn::tensor::{Device, Int, Tensor, TensorData};
use overtone_core::seed::Generator;
use rand::RngExt;

use crate::data_file::{DataFileError, read_text};

/// A text as numbers of characters.
#[derive(Clone, Debug, PartialEq)]
pub struct Text {
    /// Every character that there is, in Unicode's order; a token is a place in it.
    pub alphabet: Vec<char>,
    /// The first nine tenths.
    pub train: Vec<i32>,
    /// The last tenth.
    pub validation: Vec<i32>,
}

/// Reads a text.
///
/// # Errors
/// When it cannot be read, or is shorter than 1000 characters.
pub fn read(path: &Path) -> Result<Text, DataFileError> {
    let text = read_text(path)?;
    let alphabet: Vec<char> = text.chars().collect::<BTreeSet<_>>().into_iter().collect();
    let token = |c: char| alphabet.binary_search(&c).map_or(0, |place| place as i32);
    let mut train: Vec<i32> = text.chars().map(token).collect();
    if train.len() < 1000 {
        let reason = format!("{} characters are too few", train.len());
        return Err(DataFileError::Content { path: path.to_owned(), reason });
    }
    let validation = train.split_off(train.len() * 9 / 10);
    Ok(Text { alphabet, train, validation })
}

/// Windows of a text that begin at these places: `[windows, context]` characters, and the next
/// one at each place, `[windows · context]`.
///
/// # Panics
/// When one reaches beyond the end.
pub fn windows(
    tokens: &[i32],
    starts: &[usize],
    context: usize,
    device: &Device,
) -> (Tensor<2, Int>, Tensor<1, Int>) {
    let from = |shift: usize| -> Vec<i32> {
        starts.iter().flat_map(|&start| &tokens[start + shift..][..context]).copied().collect()
    };
    let n = starts.len();
    let read = Tensor::from_data(TensorData::new(from(0), [n, context]), device);
    (read, Tensor::from_data(TensorData::new(from(1), [n * context]), device))
}

/// Random places where a window fits.
pub fn random_starts(
    tokens: &[i32],
    n: usize,
    context: usize,
    generator: &mut Generator,
) -> Vec<usize> {
    (0..n).map(|_| generator.random_range(0..tokens.len() - context)).collect()
}

/// How many windows fit into a text one after the other.
///
/// # Panics
/// When the text is empty.
pub fn n_windows(tokens: &[i32], context: usize) -> usize {
    (tokens.len() - 1) / context
}

/// Places of windows that follow each other, spread over the text, at most so many.
pub fn spread_starts(tokens: &[i32], most: usize, context: usize) -> Vec<usize> {
    let n = n_windows(tokens, context);
    let taken = most.min(n);
    (0..taken).map(|i| i * n / taken * context).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use overtone_core::seed;

    #[test]
    fn the_shipped_text_is_as_its_description_says() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../datasets/lab");
        let text = read(&folder.join("shakespeare.txt")).unwrap();
        assert_eq!(text.train.len() + text.validation.len(), 1_115_394);
        assert_eq!((text.train.len(), text.alphabet.len()), (1_003_854, 65));
        let start: String = text.train[..14].iter().map(|i| text.alphabet[*i as usize]).collect();
        assert_eq!(start, "First Citizen:");
    }

    #[test]
    fn what_comes_next_is_one_place_on() {
        let tokens: Vec<i32> = (0..20).collect();
        let (read, next) = windows(&tokens, &[0, 15], 4, &Device::flex());
        let read: Vec<i32> = read.into_data().iter().collect();
        let next: Vec<i32> = next.into_data().iter().collect();
        assert_eq!(read, [0, 1, 2, 3, 15, 16, 17, 18]);
        assert_eq!(next, [1, 2, 3, 4, 16, 17, 18, 19]);
        // 19 characters have a next one: four windows of 4.
        assert_eq!(spread_starts(&tokens, 9, 4), [0, 4, 8, 12]);
        assert_eq!(spread_starts(&tokens, 2, 4), [0, 8]);
        let starts = random_starts(&tokens, 200, 4, &mut seed::generator(1, "batches"));
        assert_eq!((starts.iter().min(), starts.iter().max()), (Some(&0), Some(&15)));
    }
}
