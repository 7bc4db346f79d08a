//! The heads against those of `overtone-model`, differentiated by burn, in `f64`.

use overtone_core::seed;
use overtone_model::Init;
use overtone_model::burn::module::Param;
use overtone_model::burn::tensor::{DType, Device, Tensor, TensorData};
use overtone_model::head::{
    BinsOptions, FourierHead, FourierHeadConfig, FourierLikelihoodConfig, FourierLikelihoodHead,
    GmmHead, GmmHeadConfig, GmmLikelihoodConfig, GmmLikelihoodHead, HeadOutput, LinearHead,
    NumbersOptions, OnBins, OnNumbers, PointwiseHead, cross_entropy,
};
use overtone_testkit::{assert_close, largest_difference};

use super::{Head, HeadKind, Targets};
use crate::toy::data::BINS;
use crate::toy::network::ForLoss;
use crate::toy::product::padded;

/// Relative to the largest entry. Largest seen: 2e-14.
const DOUBLE: f64 = 1e-12;

/// The rows of a step, and three more than fill the lanes.
const ROWS: usize = 11;

/// One loss: its value, and its gradient by the network's results and by free parameters.
struct Found {
    loss: f64,
    by_outputs: Vec<f64>,
    by_free: Vec<f64>,
}

fn bins() -> Vec<usize> {
    (0..ROWS).map(|row| (row * 17 + 3) % BINS).collect()
}

fn points() -> Vec<f64> {
    (0..ROWS).map(|row| (row as f64 * 1.7).sin()).collect()
}

/// Results without a pattern, `[rows, width]`.
fn outputs(width: usize) -> Vec<f64> {
    (0..ROWS * width).map(|i| 0.3 * ((i * i + 5) as f64).sin()).collect()
}

fn ours(kind: HeadKind, free: &[f64]) -> Found {
    let mut head = Head::<f64>::new(kind);
    let (width, columns) = (head.outputs(), padded(head.outputs()));
    let mut wide = vec![0.0; ROWS * columns];
    for (wide, row) in wide.chunks_exact_mut(columns).zip(outputs(width).chunks_exact(width)) {
        wide[..width].copy_from_slice(row);
    }
    let (mut by_outputs, mut by_free) = (vec![0.0; wide.len()], vec![0.0; free.len()]);
    let parts = ForLoss {
        outputs: &wide,
        columns,
        free,
        by_outputs: &mut by_outputs,
        by_free: &mut by_free,
    };
    let loss = head.loss(parts, Targets { bins: &bins(), values: &points() });
    for row in by_outputs.chunks_exact(columns) {
        assert!(row[width..].iter().all(|&by| by == 0.0), "{kind}: the padding moves");
    }
    let by_outputs =
        by_outputs.chunks_exact(columns).flat_map(|row| row[..width].to_vec()).collect();
    Found { loss, by_outputs, by_free }
}

/// Parameters of an affine layer that passes its input on.
fn identity(width: usize, device: &Device) -> (Param<Tensor<2>>, Param<Tensor<1>>) {
    let values: Vec<f64> =
        (0..width * width).map(|i| f64::from(u8::from(i % (width + 1) == 0))).collect();
    let options = (device, DType::F64);
    let weight = Tensor::from_data(TensorData::new(values, [width, width]), options);
    let bias = Tensor::from_data(TensorData::new(vec![0.0; width], [width]), options);
    (Param::from_tensor(weight), Param::from_tensor(bias))
}

fn model(kind: HeadKind, free: &[f64]) -> Found {
    let device = Device::flex().autodiff();
    let generator = &mut seed::generator(0, "init");
    let init = &mut Init::drawn(&device, generator);
    let width = Head::<f64>::new(kind).outputs();
    let vector =
        |values: &[f64]| Tensor::<1>::from_data(TensorData::from(values), (&device, DType::F64));
    let data = TensorData::new(outputs(width), [ROWS, width]);
    let hidden = Tensor::<2>::from_data(data, (&device, DType::F64)).require_grad();
    let raw = Param::from_tensor(vector(if free.is_empty() { &[0.0] } else { free }));
    let (weight, bias) = identity(width, &device);
    let column =
        Tensor::<2>::from_data(TensorData::new(points(), [ROWS, 1]), (&device, DType::F64));
    let by_bins = |output: HeadOutput| {
        let bins: Vec<i32> = bins().into_iter().map(|bin| bin as i32).collect();
        let loss = cross_entropy(output.logits, Tensor::from_data(&bins[..], &device)).mean();
        match output.regularization {
            Some(rows) => loss + rows.mean(),
            None => loss,
        }
    };
    let mut moved = None;
    let loss = match kind {
        HeadKind::Linear => by_bins(LinearHead { weight }.forward(hidden.clone())),
        HeadKind::Fourier { frequencies, gamma } => {
            let config = FourierHeadConfig { gamma, ..FourierHeadConfig::new(frequencies) };
            let head = config.init(width, BINS, init);
            by_bins(FourierHead { weight, bias, ..head }.forward(hidden.clone()))
        }
        HeadKind::Gmm { components } => {
            let config = GmmHeadConfig { components, ..Default::default() };
            let head = config.init(width, BINS, init);
            moved = Some(raw.val());
            let head = GmmHead { weight, bias, raw_std: Some(raw), ..head };
            by_bins(head.forward(hidden.clone()))
        }
        HeadKind::Pointwise => {
            let head = PointwiseHead { weight, bias, tanh: false };
            head.loss(hidden.clone(), column).rows.mean()
        }
        HeadKind::FourierLikelihood { frequencies, gamma } => {
            let config =
                FourierLikelihoodConfig { gamma, ..FourierLikelihoodConfig::new(frequencies) };
            let head = config.init(width, 1, init);
            let head = FourierLikelihoodHead { weight, bias, ..head };
            let found = head.loss(hidden.clone(), column);
            match found.regularization {
                Some(rows) => found.rows.mean() + rows.mean(),
                None => found.rows.mean(),
            }
        }
        HeadKind::GmmLikelihood { components } => {
            let config = GmmLikelihoodConfig { components, ..Default::default() };
            let head = config.init(width, 1, init);
            moved = Some(raw.val());
            let head = GmmLikelihoodHead { weight, bias, raw_std: Some(raw), ..head };
            head.loss(hidden.clone(), column).rows.mean()
        }
    };
    let value: f64 = loss.clone().into_scalar();
    let gradients = loss.backward();
    let read = |data: TensorData| data.iter::<f64>().collect::<Vec<f64>>();
    Found {
        loss: value,
        by_outputs: hidden.grad(&gradients).map(|by| read(by.into_data())).unwrap(),
        by_free: moved
            .map(|free| free.grad(&gradients).map(|by| read(by.into_data())).unwrap())
            .unwrap_or_default(),
    }
}

#[track_caller]
fn check(kind: HeadKind, free: &[f64]) {
    let (ours, model) = (ours(kind, free), model(kind, free));
    println!("{kind}: {} against {}", ours.loss, model.loss);
    assert_close(&format!("{kind}: loss"), &[ours.loss], &[model.loss], DOUBLE, 0.0);
    for (what, ours, model) in
        [("outputs", &ours.by_outputs, &model.by_outputs), ("free", &ours.by_free, &model.by_free)]
    {
        let scale = model.iter().fold(0.0f64, |largest, by| largest.max(by.abs()));
        if let Some((off, _)) = largest_difference(ours, model) {
            println!("{kind}, by {what}: off by {:e} of the largest", off / scale);
        }
        assert_close(&format!("{kind}: by {what}"), ours, model, 0.0, DOUBLE * scale);
    }
}

#[test]
fn heads_on_bins() {
    check(HeadKind::Linear, &[]);
    check(HeadKind::Pointwise, &[]);
    for components in [1, 2, 3] {
        let free: Vec<f64> = (0..components).map(|g| -3.0 + 0.8 * g as f64).collect();
        check(HeadKind::Gmm { components }, &free);
    }
    // 49: the most that 50 bins tell apart.
    for (frequencies, gamma) in [(1, 0.0), (2, 1e-2), (12, 0.0), (12, 1e-3), (49, 0.0)] {
        check(HeadKind::Fourier { frequencies, gamma }, &[]);
    }
}

#[test]
fn likelihood_heads() {
    for components in [1, 2, 3] {
        let free: Vec<f64> = (0..components).map(|g| 0.7 - 0.8 * g as f64).collect();
        check(HeadKind::GmmLikelihood { components }, &free);
    }
    for (frequencies, gamma) in [(1, 0.0), (2, 1e-2), (12, 0.0), (20, 1e-3)] {
        check(HeadKind::FourierLikelihood { frequencies, gamma }, &[]);
    }
}

/// Distributions are those that the losses are of: `-ln` of the right bin's, or the density's.
#[test]
fn losses_are_of_the_distributions() {
    for kind in [
        HeadKind::Linear,
        HeadKind::Gmm { components: 2 },
        HeadKind::Fourier { frequencies: 7, gamma: 0.0 },
    ] {
        let free = Head::<f64>::new(kind).free();
        let probs = probs(kind, &free, BINS);
        let rows = probs.chunks_exact(BINS);
        for row in rows.clone() {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{kind}");
        }
        let loss = -rows.zip(bins()).map(|(row, bin)| row[bin].ln()).sum::<f64>() / ROWS as f64;
        assert_close(&kind.to_string(), &[ours(kind, &free).loss], &[loss], 1e-12, 0.0);
    }
    for kind in [
        HeadKind::GmmLikelihood { components: 2 },
        HeadKind::FourierLikelihood { frequencies: 7, gamma: 0.0 },
    ] {
        let head = Head::<f64>::new(kind);
        // Narrow enough for a mixture to lie on [-1, 1] alone.
        let free = vec![-3.0; head.free().len()];
        let (width, columns) = (head.outputs(), head.outputs());
        let densities = head.densities(&outputs(width), columns, &free, &points()).unwrap();
        let loss = -densities.iter().map(|p| (p + 1e-10).ln()).sum::<f64>() / ROWS as f64;
        assert_close(&kind.to_string(), &[ours(kind, &free).loss], &[loss], 1e-12, 0.0);
        for row in probs(kind, &free, 400).chunks_exact(400) {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-6, "{kind}");
        }
    }
}

#[test]
fn a_point_lies_in_its_bin() {
    let head = Head::<f64>::new(HeadKind::Pointwise);
    let probs = head.probs(&[-0.5, 0.5, 0.9, 0.0], 2, &[], 4);
    // Of columns two apart the first counts: -0.5 begins bin 1, 0.9 lies in bin 3.
    assert_eq!(probs, [0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]);
    assert_eq!(head.densities(&[0.0], 1, &[], &[0.0]), None);
}

fn probs(kind: HeadKind, free: &[f64], m: usize) -> Vec<f64> {
    let head = Head::<f64>::new(kind);
    let width = head.outputs();
    head.probs(&outputs(width), width, free, m)
}
