//! Launches of kernels in CUDA C++: on the stream and in the memory of every other kernel.

use burn::tensor::Device;
use burn_cubecl::tensor::CubeTensor;
use cubecl::ir::UIntKind;
use cubecl::ir::attributes::BufferIOAttr;
use cubecl::ir::metadata::Info;
use cubecl::prelude::*;
use cubecl::server::{KernelArguments, MetadataBindingInfo};
use cubecl::{CubeKernel, PrecompiledSource};

use super::sources::Source;

/// Threads of a block, in every source.
pub(crate) const THREADS: u32 = 256;

/// First compute capability with products of `bf16` and TF32 and asynchronous copies, times ten.
const CAPABILITY: u32 = 80;

/// Whether the kernels in CUDA C++ run on the device of `tensor`: an NVIDIA GPU of compute
/// capability 8.0 or more.
pub(crate) fn is_possible(tensor: &CubeTensor) -> bool {
    is_capable(&tensor.client.properties().identity.fingerprint)
}

/// The same of a device.
pub(crate) fn is_possible_on(device: &Device) -> bool {
    let identity = device.as_dispatch().identity();
    identity.is_some_and(|identity| is_capable(&identity.fingerprint))
}

/// A GPU's fingerprint has its compute capability, such as 90 in `ptx_sm90`.
fn is_capable(fingerprint: &str) -> bool {
    let capability = fingerprint.strip_prefix("ptx_sm").and_then(|digits| digits.parse().ok());
    capability.is_some_and(|capability: u32| capability >= CAPABILITY)
}

/// Runs a source on a grid of blocks. Its arguments are the inputs, the outputs, and a struct of the
/// 64-bit words.
///
/// The tensors are contiguous. No output shares memory with another argument.
pub(crate) fn launch(
    source: &'static Source,
    blocks: [usize; 3],
    inputs: &[&CubeTensor],
    outputs: &[&CubeTensor],
    words: &[u64],
) {
    let mut arguments = KernelArguments::new();
    for input in inputs {
        assert!(input.is_contiguous(), "{}: an input is not contiguous", source.name);
        let buffer = input.handle.clone().binding();
        arguments = arguments.with_buffer_io(buffer, BufferIOAttr::ReadOnly);
    }
    for output in outputs {
        let buffer = output.handle.clone().binding();
        arguments = arguments.with_buffer_io(buffer, BufferIOAttr::WriteOnly);
    }
    // All words are passed by value: a dynamic part would be a copy to the device.
    let info = MetadataBindingInfo::new(words.to_vec(), words.len());
    let [x, y, z] = blocks.map(|blocks| blocks as u32);
    let client = &outputs[0].client;
    client.launch(
        Box::new(CudaKernel(source)),
        CubeCount::Static(x, y, z),
        arguments.with_info(info),
    );
}

/// A source as a kernel of cubecl.
struct CudaKernel(&'static Source);

fn block() -> CubeDim {
    CubeDim::new_1d(THREADS)
}

impl KernelMetadata for CudaKernel {
    fn name(&self) -> &'static str {
        self.0.name
    }

    /// Identifies the kernel in every cache. The build contains one text for each name.
    fn id(&self) -> KernelId {
        KernelId::new::<Self>().info((self.0.name, self.0.version)).cube_dim(block().0)
    }

    fn address_type(&self) -> ElemType {
        ElemType::UInt(UIntKind::U32)
    }
}

impl CubeKernel for CudaKernel {
    /// Only the settings are used.
    fn define(&self) -> KernelDefinition {
        let settings = KernelSettings::new(block().0, ExecutionMode::Unchecked, AddressType::U32);
        KernelDefinition { body: Scope::root(settings.clone()), info: Info::default(), settings }
    }

    fn source(&self) -> Option<PrecompiledSource> {
        Some(PrecompiledSource {
            source: self.0.text(),
            entrypoint_name: self.0.name.to_owned(),
            lang: "cuda",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_have_a_capability() {
        assert!(is_capable("ptx_sm80") && is_capable("ptx_sm120"));
        assert!(!is_capable("ptx_sm75") && !is_capable("vulkan"));
    }
}
