//! [`Graph`]: a graph under construction. Each method appends operations and returns the name of
//! their result.

use std::collections::BTreeSet;

use overtone_model::weights::NamedTensors;
use prost::Message;

use crate::{
    error::ExportError,
    proto::{
        AttributeProto, DimensionProto, GraphProto, IR_VERSION, ModelProto, NodeProto, OPSET,
        OperatorSetIdProto, TensorProto, TensorShapeProto, TensorTypeProto, TypeProto,
        ValueInfoProto, data_type,
    },
};

/// The name of a value of the graph.
pub type Name = String;

/// An attribute of an operation.
pub enum Attribute<'a> {
    /// A number.
    Float(f32),
    /// A whole number.
    Int(i64),
    /// Whole numbers.
    Ints(&'a [i64]),
}

/// A graph under construction, with the weights that it may read.
pub struct Graph<'a> {
    weights: &'a NamedTensors,
    graph: GraphProto,
    stored: BTreeSet<String>,
}

impl<'a> Graph<'a> {
    /// An empty graph.
    pub fn new(name: &str, weights: &'a NamedTensors) -> Self {
        let graph = GraphProto { name: name.into(), ..GraphProto::default() };
        Self { weights, graph, stored: BTreeSet::new() }
    }

    /// An input of this type and shape.
    pub fn input(&mut self, name: &str, elem_type: i32, dims: &[usize]) -> Name {
        self.graph.input.push(value(name, elem_type, dims));
        name.into()
    }

    /// Makes `value` the output `name`.
    pub fn output(&mut self, name: &str, from: &str, elem_type: i32, dims: &[usize]) {
        self.push("Identity", &[from], name.into(), &[]);
        self.graph.output.push(value(name, elem_type, dims));
    }

    fn push(
        &mut self,
        kind: &str,
        inputs: &[&str],
        output: Name,
        attributes: &[(&str, Attribute<'_>)],
    ) {
        let attribute = |(name, attribute): &(&str, Attribute<'_>)| {
            let name = (*name).to_owned();
            let base = AttributeProto { name, ..AttributeProto::default() };
            match attribute {
                Attribute::Float(f) => AttributeProto { f: *f, r#type: 1, ..base },
                Attribute::Int(i) => AttributeProto { i: *i, r#type: 2, ..base },
                Attribute::Ints(ints) => AttributeProto { ints: ints.to_vec(), r#type: 7, ..base },
            }
        };
        self.graph.node.push(NodeProto {
            input: inputs.iter().map(|name| (*name).to_owned()).collect(),
            name: format!("{kind}_{}", self.graph.node.len()),
            output: vec![output],
            op_type: kind.into(),
            attribute: attributes.iter().map(attribute).collect(),
        });
    }

    /// The operation `kind`.
    pub fn with(
        &mut self,
        kind: &str,
        inputs: &[&str],
        attributes: &[(&str, Attribute<'_>)],
    ) -> Name {
        let output = format!("v{}", self.graph.node.len());
        self.push(kind, inputs, output.clone(), attributes);
        output
    }

    /// The operation `kind` without attributes.
    pub fn op(&mut self, kind: &str, inputs: &[&str]) -> Name {
        self.with(kind, inputs, &[])
    }

    fn store(&mut self, dims: &[usize], data_type: i32, raw_data: Vec<u8>) -> Name {
        let name = format!("c{}", self.graph.initializer.len());
        let dims = dims.iter().map(|&n| n as i64).collect();
        self.graph.initializer.push(TensorProto { dims, data_type, name: name.clone(), raw_data });
        name
    }

    /// A constant of `f32`.
    pub fn floats(&mut self, values: &[f32], dims: &[usize]) -> Name {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.store(dims, data_type::FLOAT, bytes)
    }

    /// One `f32`.
    pub fn float(&mut self, value: f32) -> Name {
        self.floats(&[value], &[])
    }

    /// A constant of `f64`.
    pub fn doubles(&mut self, values: &[f64], dims: &[usize]) -> Name {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.store(dims, data_type::DOUBLE, bytes)
    }

    /// A list of whole numbers.
    pub fn ints(&mut self, values: &[i64]) -> Name {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        self.store(&[values.len()], data_type::INT64, bytes)
    }

    /// The agent's weight of this name.
    ///
    /// # Errors
    /// When the agent does not have it.
    pub fn weight(&mut self, name: &str) -> Result<Name, ExportError> {
        let Some(data) = self.weights.get(name) else {
            return Err(ExportError::Missing { name: name.into() });
        };
        if self.stored.insert(name.into()) {
            let dims: Vec<i64> = data.shape().iter().map(|&n| n as i64).collect();
            let raw_data = data.iter::<f32>().flat_map(f32::to_le_bytes).collect();
            let data_type = data_type::FLOAT;
            let name = name.to_owned();
            self.graph.initializer.push(TensorProto { dims, data_type, name, raw_data });
        }
        Ok(name.into())
    }

    /// The shape of the agent's weight of this name.
    pub fn shape(&self, name: &str) -> Vec<usize> {
        self.weights.get(name).map(|data| data.shape().to_vec()).unwrap_or_default()
    }

    /// `x W + b` with the weights `prefix.weight` and, if there is one, `prefix.bias`.
    ///
    /// # Errors
    /// When the weight is missing.
    pub fn affine(&mut self, x: &str, prefix: &str) -> Result<Name, ExportError> {
        let weight = self.weight(&format!("{prefix}.weight"))?;
        let product = self.op("MatMul", &[x, &weight]);
        let bias = format!("{prefix}.bias");
        if !self.weights.contains_key(&bias) {
            return Ok(product);
        }
        let bias = self.weight(&bias)?;
        Ok(self.op("Add", &[&product, &bias]))
    }

    /// The layer norm of each row, with two weights.
    ///
    /// # Errors
    /// When a weight is missing.
    pub fn layer_norm(&mut self, x: &str, weight: &str, bias: &str) -> Result<Name, ExportError> {
        let (weight, bias) = (self.weight(weight)?, self.weight(bias)?);
        let attributes = [("axis", Attribute::Int(-1)), ("epsilon", Attribute::Float(1e-5))];
        Ok(self.with("LayerNormalization", &[x, &weight, &bias], &attributes))
    }

    /// The same elements in another shape.
    pub fn reshape(&mut self, x: &str, dims: &[usize]) -> Name {
        let dims: Vec<i64> = dims.iter().map(|&n| n as i64).collect();
        let dims = self.ints(&dims);
        self.op("Reshape", &[x, &dims])
    }

    /// The elements `from..to` of an axis.
    pub fn slice(&mut self, x: &str, axis: usize, from: usize, to: usize) -> Name {
        let [from, to, axis] = [from, to, axis].map(|n| self.ints(&[n as i64]));
        self.op("Slice", &[x, &from, &to, &axis])
    }

    /// The axes in another order.
    pub fn transpose(&mut self, x: &str, order: &[i64]) -> Name {
        self.with("Transpose", &[x], &[("perm", Attribute::Ints(order))])
    }

    /// Concatenation along an axis.
    pub fn concat(&mut self, parts: &[Name], axis: i64) -> Name {
        let parts: Vec<&str> = parts.iter().map(String::as_str).collect();
        self.with("Concat", &parts, &[("axis", Attribute::Int(axis))])
    }

    /// The sum over the last axis, which stays with size 1.
    pub fn sum_last(&mut self, x: &str) -> Name {
        let axes = self.ints(&[-1]);
        self.op("ReduceSum", &[x, &axes])
    }

    /// The place of the first largest element along axis 1, which stays with size 1.
    pub fn arg_max(&mut self, x: &str) -> Name {
        self.with("ArgMax", &[x], &[("axis", Attribute::Int(1)), ("keepdims", Attribute::Int(1))])
    }

    /// The element at a place of axis 1, which stays with size 1.
    pub fn element(&mut self, x: &str, place: &str) -> Name {
        self.with("GatherElements", &[x, place], &[("axis", Attribute::Int(1))])
    }

    /// Another element type.
    pub fn cast(&mut self, x: &str, to: i32) -> Name {
        self.with("Cast", &[x], &[("to", Attribute::Int(to.into()))])
    }

    /// The finished file.
    pub fn finish(self, doc_string: String, version: &str) -> Vec<u8> {
        let opset = OperatorSetIdProto { domain: String::new(), version: OPSET };
        let model = ModelProto {
            ir_version: IR_VERSION,
            producer_name: "overtone".into(),
            producer_version: version.into(),
            doc_string,
            graph: Some(self.graph),
            opset_import: vec![opset],
        };
        model.encode_to_vec()
    }
}

fn value(name: &str, elem_type: i32, dims: &[usize]) -> ValueInfoProto {
    let dim = |&n: &usize| DimensionProto { dim_value: Some(n as i64) };
    let shape = Some(TensorShapeProto { dim: dims.iter().map(dim).collect() });
    let tensor_type = Some(TensorTypeProto { elem_type, shape });
    ValueInfoProto { name: name.into(), r#type: Some(TypeProto { tensor_type }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_has_the_operations_in_order_and_each_weight_once() {
        let weight = |shape: [usize; 2]| {
            let n = shape[0] * shape[1];
            overtone_model::burn::tensor::TensorData::new(vec![0.5f32; n], shape)
        };
        let weights: NamedTensors = [("a.weight".to_owned(), weight([2, 3]))].into();
        let mut g = Graph::new("test", &weights);
        let x = g.input("x", data_type::FLOAT, &[1, 2]);
        let (first, again) = (g.affine(&x, "a").unwrap(), g.affine(&x, "a").unwrap());
        let sum = g.op("Add", &[&first, &again]);
        g.output("y", &sum, data_type::FLOAT, &[1, 3]);
        let missing = g.affine(&x, "b").unwrap_err().to_string();
        assert_eq!(missing, "the weights do not fit the agent: `b.weight` is missing");

        let file = g.finish("about".into(), "1");
        let graph = ModelProto::decode(&file[..]).unwrap().graph.unwrap();
        assert_eq!(graph.initializer.len(), 1);
        assert_eq!(graph.initializer[0].dims, [2, 3]);
        assert_eq!(graph.initializer[0].raw_data, 0.5f32.to_le_bytes().repeat(6));
        let mut known: BTreeSet<&str> = ["x", "a.weight"].into();
        for node in &graph.node {
            assert!(node.input.iter().all(|name| known.contains(&**name)), "{node:?}");
            assert!(node.output.iter().all(|name| known.insert(name)), "{node:?}");
        }
        let kinds: Vec<&str> = graph.node.iter().map(|node| &*node.op_type).collect();
        assert_eq!(kinds, ["MatMul", "MatMul", "Add", "Identity"]);
        assert!(known.contains("y") && graph.output[0].name == "y");
    }
}
