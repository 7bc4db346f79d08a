//! The messages of ONNX's public schema (`onnx.proto`, IR version 8) that a graph of weights needs.
//! Fields have their names and numbers there.

/// The IR version of these messages.
pub const IR_VERSION: i64 = 8;
/// The version of the operators.
pub const OPSET: i64 = 17;

/// Element types of tensors.
#[allow(missing_docs, reason = "the schema's names")]
pub mod data_type {
    pub const FLOAT: i32 = 1;
    pub const UINT8: i32 = 2;
    pub const INT64: i32 = 7;
    pub const DOUBLE: i32 = 11;
}

/// A file.
#[derive(Clone, PartialEq, prost::Message)]
#[allow(missing_docs, reason = "the schema's names")]
pub struct ModelProto {
    #[prost(int64, tag = "1")]
    pub ir_version: i64,
    #[prost(string, tag = "2")]
    pub producer_name: String,
    #[prost(string, tag = "3")]
    pub producer_version: String,
    #[prost(string, tag = "6")]
    pub doc_string: String,
    #[prost(message, optional, tag = "7")]
    pub graph: Option<GraphProto>,
    #[prost(message, repeated, tag = "8")]
    pub opset_import: Vec<OperatorSetIdProto>,
}

/// A version of operators.
#[derive(Clone, PartialEq, prost::Message)]
#[allow(missing_docs, reason = "the schema's names")]
pub struct OperatorSetIdProto {
    #[prost(string, tag = "1")]
    pub domain: String,
    #[prost(int64, tag = "2")]
    pub version: i64,
}

/// Operations in the order of execution, with weights and borders.
#[derive(Clone, PartialEq, prost::Message)]
#[allow(missing_docs, reason = "the schema's names")]
pub struct GraphProto {
    #[prost(message, repeated, tag = "1")]
    pub node: Vec<NodeProto>,
    #[prost(string, tag = "2")]
    pub name: String,
    #[prost(message, repeated, tag = "5")]
    pub initializer: Vec<TensorProto>,
    #[prost(message, repeated, tag = "11")]
    pub input: Vec<ValueInfoProto>,
    #[prost(message, repeated, tag = "12")]
    pub output: Vec<ValueInfoProto>,
}

/// One operation.
#[derive(Clone, PartialEq, prost::Message)]
#[allow(missing_docs, reason = "the schema's names")]
pub struct NodeProto {
    #[prost(string, repeated, tag = "1")]
    pub input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    pub output: Vec<String>,
    #[prost(string, tag = "3")]
    pub name: String,
    #[prost(string, tag = "4")]
    pub op_type: String,
    #[prost(message, repeated, tag = "5")]
    pub attribute: Vec<AttributeProto>,
}

/// A constant of an operation.
#[derive(Clone, PartialEq, prost::Message)]
#[allow(missing_docs, reason = "the schema's names")]
pub struct AttributeProto {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(float, tag = "2")]
    pub f: f32,
    #[prost(int64, tag = "3")]
    pub i: i64,
    #[prost(int64, repeated, tag = "8")]
    pub ints: Vec<i64>,
    #[prost(int32, tag = "20")]
    pub r#type: i32,
}

/// A stored tensor; its elements are little-endian.
#[derive(Clone, PartialEq, prost::Message)]
#[allow(missing_docs, reason = "the schema's names")]
pub struct TensorProto {
    #[prost(int64, repeated, tag = "1")]
    pub dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    #[prost(string, tag = "8")]
    pub name: String,
    #[prost(bytes = "vec", tag = "9")]
    pub raw_data: Vec<u8>,
}

/// An input or an output.
#[derive(Clone, PartialEq, prost::Message)]
#[allow(missing_docs, reason = "the schema's names")]
pub struct ValueInfoProto {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub r#type: Option<TypeProto>,
}

/// The type of a value.
#[derive(Clone, PartialEq, prost::Message)]
#[allow(missing_docs, reason = "the schema's names")]
pub struct TypeProto {
    #[prost(message, optional, tag = "1")]
    pub tensor_type: Option<TensorTypeProto>,
}

/// Element type and shape.
#[derive(Clone, PartialEq, prost::Message)]
#[allow(missing_docs, reason = "the schema's names")]
pub struct TensorTypeProto {
    #[prost(int32, tag = "1")]
    pub elem_type: i32,
    #[prost(message, optional, tag = "2")]
    pub shape: Option<TensorShapeProto>,
}

/// A shape.
#[derive(Clone, PartialEq, prost::Message)]
#[allow(missing_docs, reason = "the schema's names")]
pub struct TensorShapeProto {
    #[prost(message, repeated, tag = "1")]
    pub dim: Vec<DimensionProto>,
}

/// One axis.
#[derive(Clone, PartialEq, prost::Message)]
#[allow(missing_docs, reason = "the schema's names")]
pub struct DimensionProto {
    #[prost(int64, optional, tag = "1")]
    pub dim_value: Option<i64>,
}
