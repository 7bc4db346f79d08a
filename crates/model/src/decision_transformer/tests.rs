use burn::tensor::{Device, TensorData};

use super::*;

fn numbers<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.into_data().iter().collect()
}

/// Tokens of two contexts of three steps, width one: `kind · 100 + context · 10 + step`.
fn tokens(kind: u16) -> Tensor<3> {
    let number = |i: u16| f32::from(100 * kind + 10 * (i / 3) + i % 3);
    let values: Vec<f32> = (0..6).map(number).collect();
    Tensor::from_data(TensorData::new(values, [2, 3, 1]), &Device::flex())
}

#[test]
fn a_timestep_s_tokens_are_adjacent() {
    let sequence = interleave(vec![tokens(1), tokens(2), tokens(3)]);
    let expected = [100, 200, 300, 101, 201, 301, 102, 202, 302].map(|x| x as f32);
    let second = expected.map(|x| x + 10.0);
    assert_eq!(numbers(sequence.clone()), [expected, second].concat());
    let all = observation_tokens(Steps::All, 3, 9);
    assert_eq!(numbers(all.of(sequence.clone())), numbers(tokens(2)));
    let newest = observation_tokens(Steps::Newest, 3, 9);
    assert_eq!(numbers(newest.of(sequence)), [202.0, 212.0]);
}

#[test]
fn behaviour_cloning_has_two_tokens_a_step() {
    let sequence = interleave(vec![tokens(2), tokens(3)]);
    let expected = [200, 300, 201, 301, 202, 302].map(|x| x as f32);
    assert_eq!(numbers(sequence.clone())[..6], expected);
    let all = observation_tokens(Steps::All, 2, 6);
    assert_eq!(numbers(all.of(sequence.clone())), numbers(tokens(2)));
    let newest = observation_tokens(Steps::Newest, 2, 6);
    assert_eq!(numbers(newest.of(sequence)), [202.0, 212.0]);
}
