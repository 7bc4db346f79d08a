//! Readers of the small experiments' files.

use overtone_lab::forecast::series_file;

use crate::targets::{MIB, Seed, Target};

pub fn targets() -> Vec<Target> {
    vec![Target {
        name: "series",
        // A series in CSV: `series_file::read`.
        gzip: false,
        share: 30,
        limit: |bytes| 2 * MIB + 256 * bytes,
        prepare: |_| Ok(vec![Seed::new("el-nino.csv", SERIES)]),
        read: |path| {
            series_file::read(path)?;
            Ok(())
        },
    }]
}

const SERIES: &[u8] = include_bytes!("../../../../datasets/series/el-nino.csv");
