//! Named weights: export from a model, import into a model, and safetensors files.
//!
//! Names are the paths of the fields, such as `blocks.2.qkv_weight`.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fs::{self, File},
    io,
    path::Path,
};

use burn::{
    module::{Module, ModuleMapper, ModuleVisitor, Param},
    tensor::{DType, Gradients, Tensor, TensorData},
};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

use crate::error::ModelError;

/// Tensors by name, in name order.
pub type NamedTensors = BTreeMap<String, TensorData>;

/// The path of the visited field.
#[derive(Default)]
pub struct FieldPath(Vec<String>);

impl FieldPath {
    /// Enters a field; the variant of an enum is not part of the path.
    pub fn enter(&mut self, name: &str, container: &str) {
        if !container.starts_with("Enum:") {
            self.0.push(name.to_owned());
        }
    }

    /// Leaves the field.
    pub fn exit(&mut self, container: &str) {
        if !container.starts_with("Enum:") {
            self.0.pop();
        }
    }

    /// The names from the model to this field, joined by dots.
    pub fn name(&self) -> String {
        self.0.join(".")
    }
}

/// For a visitor or a mapper: its field `path`, a [`FieldPath`](crate::weights::FieldPath), follows
/// the visited field.
#[macro_export]
macro_rules! follows_path {
    () => {
        fn enter_module(&mut self, name: &str, container: &str) {
            self.path.enter(name, container);
        }
        fn exit_module(&mut self, _name: &str, container: &str) {
            self.path.exit(container);
        }
    };
}

/// Copies every float parameter to the host.
pub fn export<M: Module>(module: &M) -> NamedTensors {
    let mut visitor =
        Export { path: FieldPath::default(), gradients: None, tensors: NamedTensors::new() };
    module.visit(&mut visitor);
    visitor.tensors
}

/// Copies the gradients of float parameters to the host, under the parameters' names. Parameters
/// without gradient are left out.
pub fn export_gradients<M: Module>(module: &M, gradients: &Gradients) -> NamedTensors {
    let gradients = Some(gradients);
    let mut visitor =
        Export { path: FieldPath::default(), gradients, tensors: NamedTensors::new() };
    module.visit(&mut visitor);
    visitor.tensors
}

/// Visitor that collects parameters, or their gradients if `gradients` is set.
struct Export<'a> {
    path: FieldPath,
    gradients: Option<&'a Gradients>,
    tensors: NamedTensors,
}

impl ModuleVisitor for Export<'_> {
    fn visit_float<const D: usize>(&mut self, param: &Param<Tensor<D>>) {
        let value = param.val();
        let tensor = match self.gradients {
            None => Some(value),
            Some(gradients) => value.grad(gradients),
        };
        if let Some(tensor) = tensor {
            self.tensors.insert(self.path.name(), tensor.into_data());
        }
    }
    follows_path!();
}

/// Replaces every float parameter of `module` by the tensor with its name, in that tensor's own
/// float type.
///
/// # Errors
/// When a tensor is missing, or has another shape or another type than the others.
pub fn import<M: Module>(module: M, tensors: &NamedTensors) -> Result<M, ModelError> {
    Ok(imported(module, tensors)?.0)
}

/// The same, but `tensors` must not contain any other tensors.
///
/// # Errors
/// When a tensor is missing, has another shape or another type than the others, or does not belong
/// to any parameter.
pub fn restore<M: Module>(module: M, tensors: &NamedTensors) -> Result<M, ModelError> {
    let (module, names) = imported(module, tensors)?;
    match tensors.keys().find(|name| !names.contains(*name)) {
        Some(name) => Err(ModelError::UnknownTensor { name: name.clone() }),
        None => Ok(module),
    }
}

/// The module with the tensors of its parameters, and their names.
fn imported<M: Module>(
    module: M,
    tensors: &NamedTensors,
) -> Result<(M, BTreeSet<String>), ModelError> {
    struct Import<'a> {
        path: FieldPath,
        tensors: &'a NamedTensors,
        names: BTreeSet<String>,
        /// The first tensor's name and type.
        first: Option<(String, DType)>,
        error: Option<ModelError>,
    }
    impl<'a> Import<'a> {
        fn tensor(&mut self, name: &str, shape: &[usize]) -> Result<&'a TensorData, ModelError> {
            let data = checked(self.tensors, name, shape)?;
            let first = self.first.get_or_insert_with(|| (name.to_owned(), data.dtype()));
            if data.dtype() == first.1 {
                return Ok(data);
            }
            Err(ModelError::MixedTypes {
                name: name.to_owned(),
                got: format!("{:?}", data.dtype()),
                first: first.0.clone(),
                expected: format!("{:?}", first.1),
            })
        }
    }
    impl ModuleMapper for Import<'_> {
        fn map_float<const D: usize>(&mut self, param: Param<Tensor<D>>) -> Param<Tensor<D>> {
            let name = self.path.name();
            let data = match self.tensor(&name, &param.lazy_shape()) {
                Ok(data) => data,
                Err(error) => {
                    self.error.get_or_insert(error);
                    return param;
                }
            };
            self.names.insert(name);
            if !param.is_initialized() {
                // The parameter only has a shape, which is all that is used.
                let options = (&param.lazy_device(), data.dtype());
                return Param::from_tensor(Tensor::from_data(data.clone(), options));
            }
            param.map(|old| {
                let options = (&old.device(), data.dtype());
                let value = Tensor::from_data(data.clone(), options);
                if old.is_require_grad() { value.require_grad() } else { value }
            })
        }
        follows_path!();
    }
    let (path, names) = (FieldPath::default(), BTreeSet::new());
    let mut mapper = Import { path, tensors, names, first: None, error: None };
    let module = module.map(&mut mapper);
    match mapper.error {
        None => Ok((module, mapper.names)),
        Some(error) => Err(error),
    }
}

/// The same tensors with the name of the `part` and a dot as prefix.
pub fn as_part(part: &str, tensors: NamedTensors) -> NamedTensors {
    tensors.into_iter().map(|(name, data)| (format!("{part}.{name}"), data)).collect()
}

/// The tensors of one part, without the part's prefix.
pub fn of_part(part: &str, tensors: &NamedTensors) -> NamedTensors {
    let stripped = tensors.iter().filter_map(|(name, data)| {
        let name = name.strip_prefix(part)?.strip_prefix('.')?;
        Some((name.to_owned(), data.clone()))
    });
    stripped.collect()
}

/// The tensor with this name.
///
/// # Errors
/// When it is missing or has another shape.
pub fn checked<'a>(
    tensors: &'a NamedTensors,
    name: &str,
    expected: &[usize],
) -> Result<&'a TensorData, ModelError> {
    let data =
        tensors.get(name).ok_or_else(|| ModelError::MissingTensor { name: name.to_owned() })?;
    if data.shape()[..] != *expected {
        return Err(ModelError::Shape {
            name: name.to_owned(),
            got: data.shape().to_vec(),
            expected: expected.to_vec(),
        });
    }
    Ok(data)
}

/// Writes tensors as one safetensors file, `f64` tensors as `f64`, others as `f32`; `metadata` are
/// its free-form strings.
///
/// The file is written in place. To avoid incomplete files, write to a temporary name and rename.
///
/// # Errors
/// When the file cannot be written.
pub fn save(
    tensors: &NamedTensors,
    metadata: &BTreeMap<String, String>,
    path: &Path,
) -> Result<(), ModelError> {
    let failed = |source| ModelError::Io { path: path.to_owned(), source };
    let written = tensors.iter().map(|(name, data)| match data.dtype() {
        DType::F32 | DType::F64 => (name, Cow::Borrowed(data)),
        _ => (name, Cow::Owned(data.clone().convert::<f32>())),
    });
    let written: Vec<_> = written.collect();
    let views = written.iter().map(|(name, data)| {
        let dtype = if data.dtype() == DType::F64 { Dtype::F64 } else { Dtype::F32 };
        TensorView::new(dtype, data.shape().to_vec(), data.as_bytes()).map(|view| (name, view))
    });
    let views: Result<Vec<_>, _> = views.collect();
    let metadata = metadata.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
    let bytes = views
        .and_then(|views| safetensors::serialize(views, Some(metadata)))
        .map_err(|error| failed(io::Error::other(error)))?;
    let mut file = File::create(path).map_err(failed)?;
    io::Write::write_all(&mut file, &bytes).map_err(failed)?;
    file.sync_all().map_err(failed)
}

/// Reads every tensor of a safetensors file, `f64` tensors as `f64`, others as `f32`.
///
/// # Errors
/// When the file cannot be read, is not safetensors, or contains a tensor that is not of floats.
pub fn load(path: &Path) -> Result<NamedTensors, ModelError> {
    parse(&read(path)?, path)
}

/// As [`load`], for the contents of the file at `path`.
///
/// # Errors
/// When it is not safetensors, or contains a tensor that is not of floats.
pub fn parse(bytes: &[u8], path: &Path) -> Result<NamedTensors, ModelError> {
    let tensors = tensors_of(bytes, path)?.into_iter().map(|(name, tensor)| match tensor {
        FileTensor::Floats(data) => Ok((name, data)),
        FileTensor::Other(got) => Err(ModelError::DType { name, got }),
    });
    tensors.collect()
}

/// Reads files of other programs: the float tensors of a safetensors file as `f32`. Other tensors,
/// such as masks, are left out.
///
/// # Errors
/// When the file cannot be read, or is not safetensors.
pub fn load_floats(path: &Path) -> Result<NamedTensors, ModelError> {
    let tensors =
        tensors_of(&read(path)?, path)?.into_iter().filter_map(|(name, tensor)| match tensor {
            FileTensor::Floats(data) => Some((name, data.convert::<f32>())),
            FileTensor::Other(_) => None,
        });
    Ok(tensors.collect())
}

/// A tensor of a file.
enum FileTensor {
    /// Half precision is converted to `f32`.
    Floats(TensorData),
    /// A tensor of this type.
    Other(String),
}

/// Reads the file into memory instead of mapping it: a file that another program truncates in the
/// meantime is an error.
fn read(path: &Path) -> Result<Vec<u8>, ModelError> {
    fs::read(path).map_err(|source| ModelError::Io { path: path.to_owned(), source })
}

fn tensors_of(bytes: &[u8], path: &Path) -> Result<Vec<(String, FileTensor)>, ModelError> {
    let tensors = SafeTensors::deserialize(bytes).map_err(|error| ModelError::Unreadable {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    let converted = |view: TensorView<'_>| {
        let dtype = match view.dtype() {
            Dtype::F16 => DType::F16,
            Dtype::BF16 => DType::BF16,
            Dtype::F32 => DType::F32,
            Dtype::F64 => DType::F64,
            other => return FileTensor::Other(format!("{other:?}")),
        };
        let data = TensorData::from_bytes_vec(view.data().to_vec(), view.shape().to_vec(), dtype);
        FileTensor::Floats(if dtype.size() < 4 { data.convert::<f32>() } else { data })
    };
    Ok(tensors.tensors().into_iter().map(|(name, view)| (name, converted(view))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        head::{BinsOptions, LinearConfig, LinearHead, NumbersOptions, OnBins, PointwiseConfig},
        parameters::init::Init,
    };
    use burn::tensor::Device;
    use overtone_core::seed;
    use overtone_testkit::check_error;

    fn head(seed: u64) -> LinearHead {
        let generator = &mut seed::generator(seed, "init");
        LinearConfig {}.init(3, 5, &mut Init::drawn(&Device::flex(), generator))
    }

    #[test]
    fn saved_tensors_are_loaded() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("weights.safetensors");
        let tensors = export(&head(1));
        save(&tensors, &BTreeMap::new(), &path).unwrap();
        let loaded = import(head(2), &load(&path).unwrap()).unwrap();
        assert_eq!(export(&loaded), tensors);
        assert_ne!(export(&head(2)), tensors);
    }

    #[test]
    fn halves_are_saved_as_singles() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("weights.safetensors");
        let single = TensorData::from([1.5f32, -2.0, 0.25]);
        let half = single.clone().convert_dtype(DType::F16);
        save(&NamedTensors::from([("half".into(), half)]), &BTreeMap::new(), &path).unwrap();
        assert_eq!(load(&path).unwrap(), NamedTensors::from([("half".into(), single)]));
    }

    #[test]
    fn of_others_files_the_floats_are_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("theirs.safetensors");
        let double = [1.0f64, 0.1].map(f64::to_le_bytes).concat();
        let (single, mask) = (2.0f32.to_le_bytes(), [1u8, 0, 1]);
        let tensors = [
            ("double", TensorView::new(Dtype::F64, vec![2], &double).unwrap()),
            ("half", TensorView::new(Dtype::F16, vec![1], &[0, 0x3c]).unwrap()),
            ("mask", TensorView::new(Dtype::U8, vec![3], &mask).unwrap()),
            ("single", TensorView::new(Dtype::F32, vec![1], &single).unwrap()),
            ("switch", TensorView::new(Dtype::BOOL, vec![], &[1]).unwrap()),
        ];
        fs::write(&path, safetensors::serialize(tensors, None).unwrap()).unwrap();
        let expected = NamedTensors::from([
            ("double".into(), TensorData::from([1.0f32, 0.1])),
            ("half".into(), TensorData::from([1.0f32])),
            ("single".into(), TensorData::from([2.0f32])),
        ]);
        let read = load_floats(&path).unwrap();
        assert_eq!(read, expected);
        assert!(read.values().all(|data| data.dtype() == DType::F32));
        // Our own files contain only float tensors.
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains("switch") || error.contains("mask"), "{error}");
    }

    #[test]
    fn gradients_have_their_parameters_names() {
        let device = Device::flex().autodiff();
        let generator = &mut seed::generator(1, "init");
        let head = LinearConfig {}.init(2, 3, &mut Init::drawn(&device, generator));
        let loss = head.forward(Tensor::from_data([[5.0f32, 7.0]], &device)).logits.sum();
        let gradients = export_gradients(&head, &loss.backward());
        // ∂/∂W of Σ xW: each row of W has its x.
        let expected = TensorData::from([[5.0f32, 5.0, 5.0], [7.0, 7.0, 7.0]]);
        assert_eq!(gradients, NamedTensors::from([("weight".into(), expected)]));
    }

    #[test]
    fn wrong_files_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("weights.safetensors");
        fs::write(&path, b"not safetensors").unwrap();
        let error = load(&path).unwrap_err().to_string();
        assert!(error.contains("weights.safetensors"), "{error}");
        let absent = load(&dir.path().join("absent")).unwrap_err().to_string();
        assert!(absent.contains("absent"), "{absent}");
    }

    #[test]
    fn missing_and_misshapen_tensors_are_named() {
        let mut tensors = export(&head(1));
        let wrong = TensorData::zeros::<f32, _>([5, 3]);
        tensors.insert("weight".into(), wrong);
        let error = import(head(2), &tensors).unwrap_err().to_string();
        assert_eq!(error, "tensor `weight` has shape [5, 3], the model expects [3, 5]");
        let error = import(head(2), &NamedTensors::new()).unwrap_err();
        check_error!(error, ModelError::MissingTensor { name } if name == "weight");
    }

    #[test]
    fn a_module_of_shapes_is_filled_from_exactly_its_tensors() {
        let tensors = export(&head(1));
        for (device, tracked) in [(Device::flex(), false), (Device::flex().autodiff(), true)] {
            let shapes = || LinearConfig {}.init(3, 5, &mut Init::shapes(&device));
            let restored = restore(shapes(), &tensors).unwrap();
            assert_eq!(export(&restored), tensors);
            assert_eq!(restored.weight.val().is_require_grad(), tracked);
            let mut more = tensors.clone();
            more.insert("another".into(), TensorData::zeros::<f32, _>([1]));
            let error = restore(shapes(), &more).unwrap_err().to_string();
            assert!(error.contains("`another`"), "{error}");
            assert!(import(shapes(), &more).is_ok());
        }
    }

    /// Products of two types panic.
    #[test]
    fn weights_of_two_float_types_are_refused() {
        let config = PointwiseConfig {};
        let head = || config.init(3, 5, &mut Init::shapes(&Device::flex()));
        let mut tensors = NamedTensors::from([
            ("weight".into(), TensorData::zeros::<f32, _>([3, 5])),
            ("bias".into(), TensorData::zeros::<f64, _>([5])),
        ]);
        let error = restore(head(), &tensors).unwrap_err().to_string();
        let expected = "tensor `bias` has type F64, but `weight` has F32: the weights of a model \
                        must have one type";
        assert_eq!(error, expected);
        tensors.insert("weight".into(), TensorData::zeros::<f64, _>([3, 5]));
        assert_eq!(export(&restore(head(), &tensors).unwrap()), tensors);
    }
}
