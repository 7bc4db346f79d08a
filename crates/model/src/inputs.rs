//! Inputs of a recorded step: one buffer, filled on the host and read on the device.
//!
//! The host writes what differs between batches into [`Sections`], and the device reads it as
//! [`Inputs`]. A step that only reads these, and memory that it wrote itself, can be recorded once
//! and replayed with other inputs.

use burn::tensor::{Device, Int, Tensor};
use overtone_kernels::stored::{ALIGNED, Words};

/// Inputs on the host, by name.
#[derive(Clone, Debug, Default)]
pub struct Sections {
    words: Vec<i32>,
    layout: Layout,
}

/// Names, places and shapes of sections. Batches of one layout share a recorded step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout(Vec<Section>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Section {
    name: &'static str,
    start: usize,
    shape: Vec<usize>,
}

impl Sections {
    /// Adds integers of this shape.
    pub fn ints(
        &mut self,
        name: &'static str,
        shape: &[usize],
        ints: impl IntoIterator<Item = i32>,
    ) {
        let start = self.words.len();
        self.words.extend(ints);
        let length = shape.iter().product::<usize>();
        assert_eq!(self.words.len() - start, length, "{name} of shape {shape:?}");
        self.words.resize(self.words.len().next_multiple_of(ALIGNED), 0);
        self.layout.0.push(Section { name, start, shape: shape.to_vec() });
    }

    /// Adds numbers of this shape.
    pub fn floats(
        &mut self,
        name: &'static str,
        shape: &[usize],
        floats: impl IntoIterator<Item = f32>,
    ) {
        self.ints(name, shape, floats.into_iter().map(|float| float.to_bits() as i32));
    }

    /// The layout, and the words to send.
    pub fn finish(self) -> (Layout, Vec<i32>) {
        (self.layout, self.words)
    }
}

/// Inputs on the device, by name.
#[derive(Clone, Debug)]
pub struct Inputs {
    words: Words,
    layout: Layout,
}

impl Inputs {
    /// Inputs in new memory of a device.
    pub fn new(layout: Layout, words: Vec<i32>, device: &Device) -> Self {
        Self { words: Words::new(words, &device.clone().without_autodiff()), layout }
    }

    /// Overwrites the inputs by others of the same layout.
    pub fn write(&mut self, words: Vec<i32>) {
        self.words.write(words);
    }

    /// The layout.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The integers of this name.
    pub fn ints<const D: usize>(&self, name: &str) -> Option<Tensor<D, Int>> {
        let (start, shape) = self.section(name)?;
        Some(self.words.ints(start, shape.iter().product()).reshape(shape))
    }

    /// The numbers of this name. They are constants of the tape.
    pub fn floats<const D: usize>(&self, name: &str) -> Option<Tensor<D>> {
        let (start, shape) = self.section(name)?;
        let floats = self.words.floats(start, shape.iter().product());
        Some(floats.reshape(shape).autodiff())
    }

    /// The numbers of this name without autodiff.
    pub fn plain_floats<const D: usize>(&self, name: &str) -> Option<Tensor<D>> {
        self.floats(name).map(Tensor::inner)
    }

    fn section<const D: usize>(&self, name: &str) -> Option<(usize, [usize; D])> {
        let section = self.layout.0.iter().find(|section| section.name == name)?;
        let shape = section.shape.as_slice().try_into();
        Some((section.start, shape.unwrap_or_else(|_| panic!("{name} has not {D} axes"))))
    }
}
