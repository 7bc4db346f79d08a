//! Fourier heads.

use burn::tensor::{DType, Device, Tensor};
use overtone_core::seed;
use overtone_model::{
    Init,
    head::{BinsOptions, FourierHead, FourierHeadConfig, OnBins, cross_entropy, fourier},
    weights::{self, NamedTensors},
};
use overtone_testkit::{Golden, assert_close, golden};
use overtone_train::optimizer::scalar;

use crate::{
    DOUBLE, SINGLE_LOSS,
    case::{check_scaled, values},
};

#[test]
fn fourier_heads() {
    for path in golden::files("fourier_head_", ".safetensors") {
        println!("checking {}", path.display());
        let file = Golden::read(&path);
        for dtype in [DType::F64, DType::F32] {
            check_fourier_head(&file, dtype);
        }
    }
}

fn check_fourier_head(file: &Golden, dtype: DType) {
    let double = dtype == DType::F64;
    let device = Device::flex().autodiff();
    let (n, m) = (file.scalar("N") as usize, file.scalar("m") as usize);
    let config = FourierHeadConfig { gamma: file.scalar("gamma"), ..FourierHeadConfig::new(n) };
    let weight = file.get("weight"); // [2(N+1), n], PyTorch's layout
    let d_model = weight.shape[1];
    let generator = &mut seed::generator(0, "init");
    let head = config.init(d_model, m, &mut Init::drawn(&device, generator));
    let weights = NamedTensors::from([
        ("weight".into(), weight.transposed().data(dtype)),
        ("bias".into(), file.get("bias").data(dtype)),
    ]);
    let head = weights::import(head, &weights).unwrap();
    let x = file.get("x").tensor::<2>(&device, dtype).require_grad();
    let targets = file.get("y").ints::<1>(&device);

    let suffix = if double { "" } else { "_f32ref" };
    let (relative, absolute) = if double { (DOUBLE, 1e-12) } else { (0.0, 2e-4) };
    let output = head.forward(x.clone());
    let logits = file.get(&format!("logits{suffix}"));
    assert_close("logits", &values(output.logits.clone()), &logits.values, relative, absolute);

    // The reference's regulariser uses the coefficients before normalisation.
    let regularization = output.regularization.unwrap().mean();
    let ce = cross_entropy(output.logits, targets.clone()).mean();
    let loss = ce.clone() + regularization.clone();
    let tolerance = if double { DOUBLE } else { SINGLE_LOSS };
    for (name, got) in [("ce", ce), ("reg", regularization), ("loss", loss.clone())] {
        let expected = [file.scalar(&format!("{name}{suffix}"))];
        assert_close(name, &[scalar(got.inner())], &expected, tolerance, 0.0);
    }
    if !double {
        return;
    }
    let check_gradients = |loss: Tensor<1>, x: &Tensor<2>, head: &FourierHead, suffix: &str| {
        let gradients = loss.backward();
        let expected = |name: &str| file.try_get(&format!("{name}{suffix}"));
        let grad_x = values(x.grad(&gradients).unwrap());
        let grad_weight = values(head.weight.val().grad(&gradients).unwrap());
        let grad_bias = values(head.bias.val().grad(&gradients).unwrap());
        if let (Some(x), Some(weight), Some(bias)) =
            (expected("grad_x"), expected("grad_weight"), expected("grad_bias"))
        {
            check_scaled("grad_x", &grad_x, &x.values);
            check_scaled("grad_weight", &grad_weight, &weight.transposed().values);
            check_scaled("grad_bias", &grad_bias, &bias.values);
        }
    };
    check_gradients(loss, &x, &head, "");
    let x = file.get("x").tensor::<2>(&device, dtype).require_grad();
    let ce = cross_entropy(head.forward(x.clone()).logits, targets).mean();
    check_gradients(ce, &x, &head, "_ce");

    // The coefficients' own roughness, from the definition: Σ k²|c_k|².
    let (re, im) = (file.get("coeff_re"), file.get("coeff_im"));
    let by_definition: Vec<f64> = re
        .values
        .chunks(n + 1)
        .zip(im.values.chunks(n + 1))
        .map(|(re, im)| {
            (0..=n).map(|k| (k * k) as f64 * (re[k] * re[k] + im[k] * im[k])).sum::<f64>()
        })
        .collect();
    let coefficients =
        x.inner().matmul(head.weight.val().inner()) + head.bias.val().inner().unsqueeze::<2>();
    assert_close(
        "roughness",
        &values(fourier::roughness(coefficients)),
        &by_definition,
        DOUBLE,
        0.0,
    );
}
