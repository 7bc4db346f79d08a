//! [`Graph`]: the operations of an agent, read from `agent.onnx`.

use std::collections::HashMap;

use crate::{
    attributes::Attributes,
    error::{Error, damaged},
    ops::{self, Kind},
    tensor::{Data, Tensor, count, sizes},
    wire::{Field, fields},
};

/// Bytes of all constants of a file, and of all values of one call: 1 GiB.
const MOST_BYTES: usize = 1 << 30;

/// The version of operators of the files that are played.
const OPSET: i64 = 17;

#[derive(Clone, Debug)]
struct Node {
    kind: Kind,
    inputs: Vec<usize>,
    output: usize,
    attributes: Attributes,
}

/// A value that comes with each call, or that a call returns.
#[derive(Clone, Debug)]
pub struct Border {
    /// Its name.
    pub name: String,
    /// Its shape.
    pub dims: Vec<usize>,
    /// The schema's element type.
    pub elem_type: i64,
    place: usize,
}

/// The operations of an agent in order.
#[derive(Clone, Debug)]
pub struct Graph {
    nodes: Vec<Node>,
    /// By place; `None` where a call computes the value.
    constants: Vec<Option<Tensor>>,
    /// The inputs.
    pub inputs: Vec<Border>,
    /// The output.
    pub output: Border,
}

impl Graph {
    /// Reads a file, and computes everything that does not depend on inputs.
    ///
    /// # Errors
    /// When it is damaged, or contains an operation that no exported agent has.
    pub fn read(bytes: &[u8]) -> Result<Self, Error> {
        let (mut graph, mut opset) = (None, 0);
        for (tag, field) in fields(bytes)? {
            match tag {
                7 => graph = Some(field.bytes()),
                8 => {
                    for (tag, field) in fields(field.bytes())? {
                        if tag == 2 {
                            opset = field.number();
                        }
                    }
                }
                _ => {}
            }
        }
        let Some(graph) = graph else { return Err(damaged("agent.onnx does not have a graph")) };
        if opset != OPSET {
            let what = format!("agent.onnx has operators of version {opset}, expected {OPSET}");
            return Err(damaged(format!("{what}. Export the agent with `overtone export`")));
        }
        Builder::default().read(graph)
    }

    /// The output for these inputs, in the order of [`inputs`](Self::inputs).
    ///
    /// # Errors
    /// When an operation does not fit its inputs.
    pub fn run(&self, inputs: Vec<Tensor>) -> Result<Tensor, Error> {
        let mut values: Vec<Option<Tensor>> = vec![None; self.constants.len()];
        let mut bytes = 0;
        for (border, tensor) in self.inputs.iter().zip(inputs) {
            values[border.place] = Some(tensor);
        }
        for node in &self.nodes {
            let known = |&place: &usize| values[place].as_ref().or(self.constants[place].as_ref());
            let inputs: Option<Vec<&Tensor>> = node.inputs.iter().map(known).collect();
            let inputs = inputs.ok_or_else(|| damaged("agent.onnx: a value is read too early"))?;
            let output = ops::run(node.kind, &inputs, &node.attributes)?;
            bytes += output.size();
            check_bytes(bytes)?;
            values[node.output] = Some(output);
        }
        let output = self.output.place;
        let value = values[output].take().or_else(|| self.constants[output].clone());
        value.ok_or_else(|| damaged("agent.onnx: the output is not computed"))
    }
}

#[derive(Default)]
struct Builder {
    names: HashMap<String, usize>,
    constants: Vec<Option<Tensor>>,
    known: Vec<bool>,
    bytes: usize,
}

/// # Errors
/// When values need too much memory.
fn check_bytes(bytes: usize) -> Result<(), Error> {
    if bytes <= MOST_BYTES {
        Ok(())
    } else {
        Err(damaged("agent.onnx needs more than 1 GiB of memory"))
    }
}

impl Builder {
    fn place(&mut self, name: &str) -> usize {
        if let Some(place) = self.names.get(name) {
            return *place;
        }
        self.constants.push(None);
        self.known.push(false);
        self.names.insert(name.to_owned(), self.constants.len() - 1);
        self.constants.len() - 1
    }

    fn read(mut self, graph: &[u8]) -> Result<Graph, Error> {
        let all = fields(graph)?;
        let tagged = |wanted: u64| all.iter().filter(move |(tag, _)| *tag == wanted);
        for (_, field) in tagged(5) {
            let (name, tensor) = tensor(field.bytes())?;
            self.bytes += tensor.size();
            check_bytes(self.bytes)?;
            let place = self.place(name);
            self.constants[place] = Some(tensor);
            self.known[place] = true;
        }
        let mut inputs = Vec::new();
        for (_, field) in tagged(11) {
            let border = self.border(field.bytes())?;
            if self.known[border.place] {
                return Err(damaged(format!("agent.onnx: `{}` is repeated", border.name)));
            }
            self.known[border.place] = true;
            self.bytes += 8 * count(&border.dims)?;
            check_bytes(self.bytes)?;
            inputs.push(border);
        }
        let mut nodes = Vec::new();
        for (_, field) in tagged(1) {
            let node = self.node(field.bytes())?;
            if node.inputs.iter().any(|&place| !self.known[place]) || self.known[node.output] {
                return Err(damaged("agent.onnx: the operations are not in order"));
            }
            self.known[node.output] = true;
            // What depends on constants alone is a constant too.
            let constants: Option<Vec<&Tensor>> =
                node.inputs.iter().map(|&place| self.constants[place].as_ref()).collect();
            match constants {
                Some(constants) => {
                    let value = ops::run(node.kind, &constants, &node.attributes)?;
                    self.bytes += value.size();
                    check_bytes(self.bytes)?;
                    self.constants[node.output] = Some(value);
                }
                None => nodes.push(node),
            }
        }
        let mut outputs = tagged(12);
        let (Some((_, output)), None) = (outputs.next(), outputs.next()) else {
            return Err(damaged("agent.onnx does not have one output"));
        };
        let output = self.border(output.bytes())?;
        Ok(Graph { nodes, constants: self.constants, inputs, output })
    }

    fn border(&mut self, bytes: &[u8]) -> Result<Border, Error> {
        let (mut name, mut dims, mut elem_type) = ("", Vec::new(), 0);
        for (tag, field) in fields(bytes)? {
            match tag {
                1 => name = field.text()?,
                2 => {
                    let inner = fields(field.bytes())?;
                    let tensor = inner.first().map_or(&[][..], |(_, field)| field.bytes());
                    for (tag, field) in fields(tensor)? {
                        match tag {
                            1 => elem_type = field.number(),
                            _ => dims = shape(field)?,
                        }
                    }
                }
                _ => {}
            }
        }
        count(&dims)?;
        Ok(Border { name: name.to_owned(), dims, elem_type, place: self.place(name) })
    }

    fn node(&mut self, bytes: &[u8]) -> Result<Node, Error> {
        let (mut inputs, mut output, mut kind) = (Vec::new(), None, "");
        let mut attributes = Attributes::default();
        for (tag, field) in fields(bytes)? {
            match tag {
                1 => inputs.push(self.place(field.text()?)),
                2 => output = Some(self.place(field.text()?)),
                4 => kind = field.text()?,
                5 => attribute(field, &mut attributes)?,
                _ => {}
            }
        }
        let output = output.ok_or_else(|| damaged("agent.onnx: an operation without output"))?;
        Ok(Node { kind: Kind::named(kind)?, inputs, output, attributes })
    }
}

fn attribute(field: Field<'_>, all: &mut Attributes) -> Result<(), Error> {
    let (mut name, mut float, mut ints) = (String::new(), None, Vec::new());
    for (tag, field) in fields(field.bytes())? {
        match (tag, field) {
            (1, field) => name = field.text()?.to_owned(),
            (2, Field::Float(value)) => float = Some(value),
            (3 | 8, field) => field.numbers(&mut ints)?,
            _ => {}
        }
    }
    match float {
        Some(value) => all.floats.push((name, value)),
        // A whole number of 0 is not stored.
        None if ints.is_empty() => all.ints.push((name, vec![0])),
        None => all.ints.push((name, ints)),
    }
    Ok(())
}

fn shape(field: Field<'_>) -> Result<Vec<usize>, Error> {
    let mut dims = Vec::new();
    for (_, axis) in fields(field.bytes())? {
        dims.push(fields(axis.bytes())?.first().map_or(0, |(_, field)| field.number()));
    }
    sizes(&dims)
}

fn tensor(bytes: &[u8]) -> Result<(&str, Tensor), Error> {
    let (mut name, mut dims, mut kind, mut raw) = ("", Vec::new(), 0, &[][..]);
    for (tag, field) in fields(bytes)? {
        match tag {
            1 => field.numbers(&mut dims)?,
            2 => kind = field.number(),
            8 => name = field.text()?,
            9 => raw = field.bytes(),
            _ => {}
        }
    }
    let dims = sizes(&dims)?;
    let data = match kind {
        1 => Data::F32(raw.chunks_exact(4).map(|x| f32::from_le_bytes(array(x))).collect()),
        7 => Data::I64(raw.chunks_exact(8).map(|x| i64::from_le_bytes(array(x))).collect()),
        11 => Data::F64(raw.chunks_exact(8).map(|x| f64::from_le_bytes(array(x))).collect()),
        _ => return Err(damaged(format!("agent.onnx: weights of the unknown type {kind}"))),
    };
    Ok((name, Tensor::new(dims, data)?))
}

/// The bytes as an array of this length, which they have.
fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(bytes);
    array
}
