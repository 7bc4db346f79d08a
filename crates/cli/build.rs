//! Lets the program find libpython without LD_LIBRARY_PATH, and compiles the calls of MPI.

fn main() {
    #[cfg(feature = "python")]
    pyo3_build_config::add_libpython_rpath_link_args();
    #[cfg(feature = "mpi")]
    mpi();
}

/// Compiles `mpi.c` with `mpicc`, and links what `mpicc` links.
///
/// Without `mpicc` there is a warning only: `cargo check` needs no MPI.
#[cfg(feature = "mpi")]
fn mpi() {
    use std::process::Command;

    let command_line = match Command::new("mpicc").arg("-show").output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).into_owned()
        }
        _ => {
            println!(
                "cargo::warning=mpicc was not found, so the feature `mpi` is checked but cannot be \
                 linked. Install an MPI library (docs/scaling.md)"
            );
            // A file that never exists: the next build looks for mpicc again.
            println!("cargo::rerun-if-changed=mpicc-was-not-found");
            return;
        }
    };
    let source = "src/processes/mpi.c";
    println!("cargo::rerun-if-changed={source}");
    cc::Build::new().compiler("mpicc").file(source).compile("overtone_mpi");
    for word in command_line.split_whitespace() {
        if let Some(folder) = word.strip_prefix("-L") {
            println!("cargo::rustc-link-search=native={folder}");
        } else if let Some(library) = word.strip_prefix("-l") {
            println!("cargo::rustc-link-lib={library}");
        }
    }
}
