//! The fused encoder compared with the reference, and the reference compared with differences.

mod agreement;

use agreement::{
    check_differences, check_empty, check_fused, check_repeats, distance, infer,
    operands::{
        FRAME, frames_on, nature_parameters as parameters, nature_weights as weights, pixels,
    },
    run,
};
use burn::tensor::{DType, Device, Int, Tensor, TensorData};
use overtone_kernels::{Form, nature_encoder};

/// Largest relative error of the fused form seen: 1.2e-6.
const TOLERANCE: f64 = 5e-6;

fn frames(pixels: Vec<u8>, sequences: usize) -> Tensor<4, Int> {
    frames_on(pixels, sequences, &Device::flex())
}

#[test]
fn stacks_agree_with_the_reference() {
    for (n, d) in [(3, 24), (1, 128)] {
        let frames = frames(pixels(4 * n), n);
        check_fused(&parameters(d), TOLERANCE, |leaves, form| {
            nature_encoder(frames.clone(), weights(leaves), form)
        });
    }
}

#[test]
fn windows_agree_with_the_reference() {
    for steps in [5, 7] {
        let frames = frames(pixels(2 * (steps + 3)), 2);
        check_fused(&parameters(24), TOLERANCE, |leaves, form| {
            nature_encoder(frames.clone(), weights(leaves), form)
        });
    }
}

#[test]
fn windows_are_their_stacks() {
    let (windows, steps) = (2, 7);
    let pixels = pixels(windows * (steps + 3));
    let mut stacks = Vec::new();
    for window in pixels.chunks_exact((steps + 3) * FRAME * FRAME) {
        for step in 0..steps {
            let stack = step * FRAME * FRAME..(step + 4) * FRAME * FRAME;
            stacks.extend_from_slice(&window[stack]);
        }
    }
    let windows_of = frames(pixels, windows);
    let stacks_of = frames(stacks, windows * steps);
    for form in [Form::Auto, Form::Reference] {
        let by_window = infer(&parameters(24), DType::F32, form, |leaves, form| {
            nature_encoder(windows_of.clone(), weights(leaves), form)
        });
        let by_stack = infer(&parameters(24), DType::F32, form, |leaves, form| {
            nature_encoder(stacks_of.clone(), weights(leaves), form)
        });
        assert_eq!(by_window, by_stack, "{form:?}");
    }
}

#[test]
fn an_embedding_does_not_depend_on_its_neighbours() {
    let all = pixels(4 * 40);
    let embed = |pixels: &[u8]| {
        let n = pixels.len() / (4 * FRAME * FRAME);
        infer(&parameters(24), DType::F32, Form::Auto, |leaves, form| {
            nature_encoder(frames(pixels.to_vec(), n), weights(leaves), form)
        })
    };
    let together = embed(&all);
    for (i, stack) in all.chunks_exact(4 * FRAME * FRAME).enumerate().skip(30).take(5) {
        let alone = embed(stack);
        // Products of one row may sum in another order.
        let apart = distance(&alone, &together[i * 24..(i + 1) * 24]);
        assert!(apart < 1e-5, "{apart}"); // seen: 2e-6
    }
}

/// With more stacks than partitions of the work. It is not compared with the reference: among so
/// many units, one may be so near zero that rounding decides its ReLU.
#[test]
fn gradients_add_over_stacks() {
    let (n, first) = (77, 40);
    let all = pixels(4 * n);
    let (left, right) = all.split_at(first * 4 * FRAME * FRAME);
    let frames =
        [frames(all.clone(), n), frames(left.to_vec(), first), frames(right.to_vec(), n - first)];
    let inputs = parameters(17);
    let together = run(&inputs, DType::F32, Form::Auto, |leaves, form| {
        nature_encoder(frames[0].clone(), weights(leaves), form)
    });
    let apart = run(&inputs, DType::F32, Form::Auto, |leaves, form| {
        let embed = |frames: &Tensor<4, Int>| nature_encoder(frames.clone(), weights(leaves), form);
        Tensor::cat(vec![embed(&frames[1]), embed(&frames[2])], 0)
    });
    for ((name, together), (_, apart)) in together.gradients.iter().zip(&apart.gradients) {
        let apart = distance(together, apart);
        assert!(apart < TOLERANCE, "{name}: {apart}");
    }
}

#[test]
fn no_stacks_have_gradients_of_zero() {
    let data = TensorData::new(Vec::<u8>::new(), [0, 4, FRAME, FRAME]);
    let frames = Tensor::<4, Int>::from_data(data, (&Device::flex(), DType::U8));
    check_empty(&parameters(24), |leaves, form| {
        nature_encoder(frames.clone(), weights(leaves), form)
    });
}

#[test]
fn results_repeat_to_the_bit() {
    let frames = frames(pixels(5 * 10), 5);
    check_repeats(&parameters(24), |leaves, form| {
        nature_encoder(frames.clone(), weights(leaves), form)
    });
}

#[test]
fn gradients_of_the_reference_are_differences() {
    let frames = frames(pixels(5), 1);
    check_differences(&parameters(5), 6, 1e-6, |leaves, form| {
        nature_encoder(frames.clone(), weights(leaves), form)
    });
}

#[test]
fn other_integer_types_give_the_same_result() {
    let narrow = frames(pixels(4 * 3), 3);
    let wide = narrow.clone().cast(burn::tensor::IntDType::I32);
    let embed = |frames: &Tensor<4, Int>| {
        infer(&parameters(24), DType::F32, Form::Reference, |leaves, form| {
            nature_encoder(frames.clone(), weights(leaves), form)
        })
    };
    assert_eq!(embed(&narrow), embed(&wide));
}
