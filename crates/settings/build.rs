//! Lets the tests of this crate find libpython without LD_LIBRARY_PATH.

fn main() {
    #[cfg(feature = "python")]
    pyo3_build_config::add_libpython_rpath_link_args();
}
