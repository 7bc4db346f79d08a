//! Readers of the small experiments' files.

use std::path::Path;

use anyhow::Result;
use overtone_lab::forecast::series_file;
use overtone_lab::pmf_file;
use safetensors::Dtype;
use safetensors::tensor::TensorView;

use crate::targets::{MIB, Seed, Target};

pub fn targets() -> Vec<Target> {
    vec![
        Target {
            name: "distributions",
            // Distributions in CSV and safetensors: `pmf_file::read`.
            gzip: false,
            share: 20,
            limit: |bytes| 2 * MIB + 128 * bytes,
            prepare: distributions,
            read: |path| {
                pmf_file::read(path)?;
                Ok(())
            },
        },
        Target {
            name: "series",
            // A series and its description: `series_file::read`.
            gzip: false,
            share: 10,
            limit: |bytes| 2 * MIB + 256 * bytes,
            prepare: |_| {
                Ok(vec![Seed::new("el-nino.toml", SERIES_CARD), Seed::new("el-nino.csv", SERIES)])
            },
            read: |path| {
                series_file::read(&path.with_extension("toml"))?;
                Ok(())
            },
        },
    ]
}

const SERIES_CARD: &[u8] = include_bytes!("../../../../datasets/series/el-nino.toml");
const SERIES: &[u8] = include_bytes!("../../../../datasets/series/el-nino.csv");

fn distributions(_: &Path) -> Result<Vec<Seed>> {
    let rows: Vec<u8> =
        [0.5f32, 0.25, 0.25, 0.0, 1.0, 0.0].iter().flat_map(|p| p.to_le_bytes()).collect();
    let row: Vec<u8> = [0.125f64, 0.875].iter().flat_map(|p| p.to_le_bytes()).collect();
    let tensors = [
        ("rows", TensorView::new(Dtype::F32, vec![2, 1, 3], &rows)?),
        ("row", TensorView::new(Dtype::F64, vec![2], &row)?),
    ];
    Ok(vec![
        Seed::new("pmf.csv", "left,middle,right\n0.5,0.25,0.25\n0,1,0\n"),
        Seed::new("pmf.safetensors", safetensors::serialize(tensors, None)?),
    ])
}
