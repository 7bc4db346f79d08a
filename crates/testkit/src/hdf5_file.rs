//! [`Hdf5File`]: HDF5 files that tests write or change.

use std::path::Path;
use std::rc::Rc;

use hdf5_pure::{
    AttrValue, DatasetBuilder, Datatype, DatatypeByteOrder, EnumTypeBuilder, File,
    FloatingPointLayout, Group,
};

/// A file that is open for writing, or a group in it. Its contents are written when it is dropped.
pub struct Hdf5File {
    file: Rc<File>,
    group: Group,
}

/// An element of an array.
pub trait Element: Copy {
    /// Its type in a file.
    fn datatype() -> Datatype;
    /// Its bytes in a file.
    fn bytes(self) -> Vec<u8>;
}

impl Hdf5File {
    /// Creates a file.
    pub fn create(path: impl AsRef<Path>) -> Self {
        Self::of(File::create(path).expect("a file that can be created"))
    }

    /// Opens a file to change it.
    pub fn edit(path: impl AsRef<Path>) -> Self {
        Self::of(File::open_rw(path).expect("an HDF5 file"))
    }

    fn of(file: File) -> Self {
        Self { group: file.root(), file: Rc::new(file) }
    }

    /// Group `name`, which is created where it is not there.
    pub fn group(&self, name: &str) -> Self {
        let within = |above: Group, name: &str| {
            above.group(name).or_else(|_| above.create_group(name)).expect("a group")
        };
        let group = name.split('/').fold(self.group.clone(), within);
        Self { file: Rc::clone(&self.file), group }
    }

    /// Writes `values` as array `name`, in place of what is there; of `width` numbers a row, or one
    /// number a row without an axis for 0.
    pub fn put<T: Element>(&self, name: &str, values: &[T], width: usize) {
        let rows = values.len() / width.max(1);
        let shape = if width == 0 { vec![rows] } else { vec![rows, width] };
        self.put_shaped(name, values, &shape);
    }

    /// As [`Self::put`], of any shape.
    pub fn put_shaped<T: Element>(&self, name: &str, values: &[T], shape: &[usize]) {
        let bytes = values.iter().flat_map(|value| value.bytes()).collect();
        let shape: Vec<u64> = shape.iter().map(|&axis| axis as u64).collect();
        self.build(name, |array| {
            array.with_raw_data(T::datatype(), bytes, values.len() as u64).with_shape(&shape);
        });
    }

    /// Writes array `name` as `build` says, in place of what is there.
    pub fn build(&self, name: &str, build: impl FnOnce(&mut DatasetBuilder)) {
        if self.group.dataset(name).is_ok() {
            self.delete(name);
        }
        self.group.create_dataset(name, build).expect("an array that can be written");
    }

    /// Deletes an array or a group.
    pub fn delete(&self, name: &str) {
        self.group.delete(name).expect("a name that is there");
        self.file.commit().expect("a file that can be written");
    }

    /// Sets an attribute.
    pub fn attribute(&self, name: &str, value: AttrValue) {
        self.group.set_attr(name, value).expect("an attribute that can be written");
    }

    /// Deletes an attribute.
    pub fn delete_attribute(&self, name: &str) {
        self.group.remove_attr(name).expect("an attribute that is there");
    }
}

impl Drop for Hdf5File {
    fn drop(&mut self) {
        if self.file.has_staged_edits() && !std::thread::panicking() {
            self.file.commit().expect("a file that can be written");
        }
    }
}

/// The shape of array `name` of a file, and its numbers.
pub fn reals(path: impl AsRef<Path>, name: &str) -> (Vec<usize>, Vec<f32>) {
    let array = File::open(path).and_then(|file| file.dataset(name)).expect("an array");
    let shape = array.shape().expect("a shape").into_iter().map(|axis| axis as usize).collect();
    (shape, array.read_f32().expect("numbers"))
}

macro_rules! elements {
    ($($element:ty: $datatype:ident),*) => {$(
        impl Element for $element {
            fn datatype() -> Datatype {
                hdf5_pure::$datatype()
            }

            fn bytes(self) -> Vec<u8> {
                self.to_le_bytes().to_vec()
            }
        }
    )*};
}

elements!(
    f32: make_f32_type, f64: make_f64_type, u8: make_u8_type, i8: make_i8_type, i32: make_i32_type,
    i64: make_i64_type
);

impl Element for half::f16 {
    fn datatype() -> Datatype {
        let layout = FloatingPointLayout {
            bit_offset: 0,
            bit_precision: 16,
            exponent_location: 10,
            exponent_size: 5,
            mantissa_location: 0,
            mantissa_size: 10,
            exponent_bias: 15,
        };
        Datatype::FloatingPoint { size: 2, byte_order: DatatypeByteOrder::LittleEndian, layout }
    }

    fn bytes(self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }
}

impl Element for bool {
    fn datatype() -> Datatype {
        let flag = EnumTypeBuilder::with_base(hdf5_pure::make_i8_type());
        let flag = flag.raw_value("FALSE", &[0]).raw_value("TRUE", &[1]);
        flag.build().expect("two values of a byte")
    }

    fn bytes(self) -> Vec<u8> {
        vec![u8::from(self)]
    }
}
