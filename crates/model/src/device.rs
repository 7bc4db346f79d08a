//! Selection of the device at run time.

use burn::tensor::Device;

use crate::error::ModelError;

/// An available device.
pub struct Chosen {
    /// The device, without autodiff.
    pub device: Device,
    /// Whether it is a GPU.
    pub is_gpu: bool,
    /// A description for people.
    pub name: String,
}

/// Number of threads on a CPU: `RAYON_NUM_THREADS`, or one per core.
fn n_threads() -> usize {
    let configured =
        std::env::var("RAYON_NUM_THREADS").ok().and_then(|configured| configured.parse().ok());
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    configured.filter(|&configured| configured > 0).unwrap_or_else(cores)
}

/// The device with this name: `auto` (the first GPU if there is one), `cpu`, `cuda` or `cuda:N`.
///
/// # Errors
/// When the name is invalid, or the device does not exist.
pub fn choose(name: &str) -> Result<Chosen, ModelError> {
    let wrong =
        |expected: String| ModelError::Input { what: "device", got: name.to_owned(), expected };
    let cpu = || {
        let threads = n_threads();
        Chosen { device: Device::flex(), is_gpu: false, name: format!("cpu, {threads} threads") }
    };
    let gpu =
        |index: usize| Chosen { device: cuda(index), is_gpu: true, name: format!("cuda:{index}") };
    match name.split_once(':') {
        None if name == "cpu" => Ok(cpu()),
        None if name == "auto" && n_cuda() > 0 => Ok(gpu(0)),
        None if name == "auto" && cfg!(feature = "cuda") => {
            let Chosen { name, .. } = cpu();
            Ok(Chosen { name: format!("{name} (no CUDA device found)"), ..cpu() })
        }
        None if name == "auto" => Ok(cpu()),
        None if name != "cuda" => Err(wrong("auto, cpu, cuda or cuda:N".into())),
        Some((kind, _)) if kind != "cuda" => Err(wrong("auto, cpu, cuda or cuda:N".into())),
        _ if cfg!(not(feature = "cuda")) => {
            Err(wrong("cpu: this program was built without the feature `cuda`".into()))
        }
        rest => {
            let index = rest.map_or("0", |(_, index)| index);
            let index: usize = index.parse().map_err(|_| wrong("cuda:N with a number N".into()))?;
            if index < n_cuda() {
                Ok(gpu(index))
            } else {
                Err(wrong(match n_cuda() {
                    0 => "cpu: no CUDA device found. Check the NVIDIA driver".into(),
                    n => format!("cpu, or a CUDA device from cuda:0 to cuda:{}", n - 1),
                }))
            }
        }
    }
}

/// Whether this device is the CPU.
pub fn is_cpu(device: &Device) -> bool {
    *device == Device::flex()
}

#[cfg(feature = "cuda")]
fn n_cuda() -> usize {
    Device::enumerate(burn::tensor::DeviceType::Cuda).into_vec().len()
}

#[cfg(feature = "cuda")]
fn cuda(index: usize) -> Device {
    Device::cuda(index)
}

#[cfg(not(feature = "cuda"))]
fn n_cuda() -> usize {
    0
}

#[cfg(not(feature = "cuda"))]
fn cuda(_index: usize) -> Device {
    Device::flex()
}

#[cfg(test)]
mod tests {
    use super::{choose, is_cpu};

    #[test]
    fn names_of_devices() {
        assert!(!choose("cpu").unwrap().is_gpu);
        assert!(is_cpu(&choose("cpu").unwrap().device.autodiff()));
        assert!(choose("auto").is_ok());
        for wrong in ["gpu", "cpu:0", "cuda:x", "cuda:99", ""] {
            let error = choose(wrong).err().map(|error| error.to_string());
            assert!(error.is_some_and(|text| text.contains("device: got")), "{wrong}");
        }
    }
}
