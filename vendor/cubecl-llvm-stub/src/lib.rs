//! Stand-in for `cubecl-llvm` 0.11.3: the types `cubecl-cuda` names, and no LLVM.
//!
//! `cubecl-cuda` always compiles both of its backends: CUDA C++ through NVRTC, and LLVM.
//! The published `cubecl-llvm` downloads a prebuilt LLVM while it builds, and its backend hides
//! Hopper's bulk copies, clusters and barriers from the kernels. Overtone uses the NVRTC backend
//! (`cubecl/cuda-cpp`), so nothing here ever runs; it only has to type-check.
//! Types that exist only once LLVM has produced something hold [`Never`] and have no value.
//! Selecting the LLVM backend by mistake gives [`CompilationError::Generic`] with the reason.

use cubecl_core::ir::nvidia::SmArch;
use cubecl_environment::backtrace::BackTrace;
use cubecl_runtime::compiler::{CompilationError, Compiler};
use cubecl_runtime::kernel::{BufferIOAttr, KernelDefinition};

/// A type without values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Never {}

impl core::fmt::Display for Never {
    fn fmt(&self, _: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match *self {}
    }
}

/// What the LLVM backend would emit code for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LlvmTarget {
    /// NVIDIA's PTX.
    #[default]
    Nvptx,
}

/// The compiler's settings; all of them are ignored.
#[derive(Clone, Debug, Default)]
pub struct PlironOptions {
    /// AMD architecture; there is none here.
    pub arch: Option<Never>,
    /// NVIDIA architecture of the device.
    pub sm_arch: Option<SmArch>,
    /// PTX version to emit; never chosen here.
    pub ptx_version: Option<nvptx::ptx_version::PtxVersion>,
    /// Whether scalars travel in the kernel's parameter block.
    pub grid_constants: bool,
    /// The published struct has more fields, and its user ends with `..Default::default()`.
    pub unused: (),
}

/// Compiled PTX; has no value.
#[derive(Clone, Debug)]
pub struct NvptxModule {
    /// NUL-terminated PTX.
    pub ptx: Vec<core::ffi::c_char>,
    /// Name of the kernel's entry point.
    pub entrypoint: String,
    /// Intermediate code, for logs.
    pub ir: String,
    /// Shared memory one launch needs, in bytes.
    pub shared_memory_size: usize,
    /// How the kernel uses each buffer, in binding order.
    pub io: Vec<BufferIOAttr>,
    /// Makes the struct impossible to build.
    pub never: Never,
}

/// A compiled kernel; has no value.
#[derive(Clone, Debug)]
pub enum PlironArtifact {
    /// PTX for the CUDA driver.
    NvptxCode(NvptxModule),
}

impl core::fmt::Display for PlironArtifact {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self::NvptxCode(module) = self;
        module.never.fmt(f)
    }
}

/// The LLVM compiler: refuses every kernel.
#[derive(Clone, Debug, Default)]
pub struct PlironCompiler {
    /// What it would emit code for.
    pub target: LlvmTarget,
}

impl Compiler for PlironCompiler {
    type Representation = PlironArtifact;
    type CompilationOptions = PlironOptions;

    /// # Errors
    /// Always: there is no LLVM here.
    fn compile(
        &mut self,
        _kernel: KernelDefinition,
        _options: &PlironOptions,
    ) -> Result<PlironArtifact, CompilationError> {
        Err(CompilationError::Generic {
            reason: "this build has no LLVM backend: enable the feature `cuda-cpp` of `cubecl`"
                .into(),
            backtrace: BackTrace::capture(),
        })
    }

    fn extension(&self) -> &'static str {
        "ll"
    }

    fn lang_tag(&self) -> &'static str {
        "llvm"
    }
}

/// PTX versions.
pub mod nvptx {
    /// The PTX version a driver loads.
    pub mod ptx_version {
        /// A PTX version; has no value, since no PTX is emitted here.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct PtxVersion(crate::Never);

        impl PtxVersion {
            /// The newest version the driver loads: none that this crate could emit.
            pub fn for_driver(_driver: i32) -> Option<Self> {
                None
            }
        }

        impl core::fmt::Display for PtxVersion {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.0.fmt(f)
            }
        }
    }
}

/// What a device may advertise.
pub mod shared {
    /// Narrowing a device's features to those the LLVM backend lowers.
    pub mod lowered_features {
        use cubecl_core::ir::DeviceProperties;

        /// The target whose features are narrowed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum GpuTarget {
            /// NVIDIA's PTX.
            Nvptx,
        }

        /// Leaves `_properties` alone: called for the LLVM backend only, which compiles nothing.
        pub fn restrict_features(_properties: &mut DeviceProperties, _target: GpuTarget) {}
    }
}
