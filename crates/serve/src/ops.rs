//! The operations of exported agents, as ONNX defines them.

use crate::{
    attributes::Attributes,
    error::{Error, damaged},
    math, matrix,
    tensor::{Data, Tensor, common, count, places, sizes, walk},
};

/// Generates the list of operations.
macro_rules! kinds {
    ($($name:ident)*) => {
        /// An operation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Kind { $(#[doc = "ONNX's operator of this name."] $name,)* }

        impl Kind {
            /// # Errors
            /// When no exported agent has such an operation.
            pub fn named(name: &str) -> Result<Self, Error> {
                match name {
                    $(stringify!($name) => Ok(Self::$name),)*
                    _ => Err(damaged(format!(
                        "agent.onnx: the operation `{name}` is unknown. Export the agent with \
                         `overtone export`"
                    ))),
                }
            }
        }
    };
}

kinds! {
    Abs Add ArgMax Cast Clip Concat Conv CumSum Div Erf Exp Expand Gather GatherElements Greater
    GreaterOrEqual Identity LayerNormalization Less Log MatMul Max Min Mul ReduceMax ReduceMean
    ReduceSum Relu Reshape Sin Slice Softmax Softplus Sub Tanh Transpose Where
}

/// The result of an operation.
///
/// # Errors
/// When the inputs do not fit it.
pub fn run(kind: Kind, inputs: &[&Tensor], attributes: &Attributes) -> Result<Tensor, Error> {
    let input = |at: usize| {
        let missing = || damaged(format!("agent.onnx: {kind:?} lacks input {at}"));
        inputs.get(at).copied().ok_or_else(missing)
    };
    let x = input(0)?;
    match kind {
        Kind::Identity => Ok(x.clone()),
        Kind::Abs => floats(x, f32::abs, f64::abs),
        Kind::Erf => exactly(x, math::erf),
        Kind::Exp => exactly(x, math::exp),
        Kind::Log => exactly(x, math::ln),
        // A number that is not finite is not hidden, here and below.
        Kind::Relu => {
            floats(x, |x| if x < 0.0 { 0.0 } else { x }, |x| if x < 0.0 { 0.0 } else { x })
        }
        Kind::Sin => exactly(x, math::sin),
        Kind::Softplus => exactly(x, math::softplus),
        Kind::Tanh => exactly(x, math::tanh),
        Kind::Add => paired(x, input(1)?, |a, b| a + b, |a, b| a + b, i64::wrapping_add),
        Kind::Sub => paired(x, input(1)?, |a, b| a - b, |a, b| a - b, i64::wrapping_sub),
        Kind::Mul => paired(x, input(1)?, |a, b| a * b, |a, b| a * b, i64::wrapping_mul),
        Kind::Div => {
            paired(x, input(1)?, |a, b| a / b, |a, b| a / b, |a, b| a.checked_div(b).unwrap_or(0))
        }
        Kind::Max => paired(
            x,
            input(1)?,
            |a, b| if a > b || a.is_nan() { a } else { b },
            |a, b| if a > b || a.is_nan() { a } else { b },
            i64::max,
        ),
        Kind::Min => paired(
            x,
            input(1)?,
            |a, b| if a < b || a.is_nan() { a } else { b },
            |a, b| if a < b || a.is_nan() { a } else { b },
            i64::min,
        ),
        Kind::Less => compared(x, input(1)?, |a, b| a < b),
        Kind::Greater => compared(x, input(1)?, |a, b| a > b),
        Kind::GreaterOrEqual => compared(x, input(1)?, |a, b| a >= b),
        Kind::Clip => {
            let (low, high) = (scalar(input(1)?)?, scalar(input(2)?)?);
            let within = |x: f32| {
                if x < low {
                    low
                } else if x > high {
                    high
                } else {
                    x
                }
            };
            floats(x, within, |x| f64::from(within(x as f32)))
        }
        Kind::Where => chosen(x, input(1)?, input(2)?),
        Kind::Cast => cast(x, attributes.int("to", 0)),
        Kind::Reshape => Tensor::new(sizes(input(1)?.i64s()?)?, x.data.clone()),
        Kind::Expand => {
            let dims = common(&x.dims, &sizes(input(1)?.i64s()?)?)?;
            x.picked(dims.clone(), &places(&x.dims, &dims))
        }
        Kind::Transpose => transposed(x, attributes.list("perm")),
        Kind::Concat => concat(inputs, attributes.int("axis", 0)),
        Kind::Slice => sliced(x, input(1)?, input(2)?, input(3)?),
        Kind::Gather => gathered(x, input(1)?, attributes.int("axis", 0)),
        Kind::GatherElements => elements(x, input(1)?, attributes.int("axis", 0)),
        Kind::ArgMax => largest(x, attributes),
        Kind::CumSum => cumulative(x, input(1)?, attributes.int("exclusive", 0) == 1),
        Kind::ReduceSum => {
            let axes = input(1)?.i64s()?;
            reduced(x, axes, attributes.int("keepdims", 1) == 1, |sum, value| sum + value, 0.0)
        }
        Kind::ReduceMean => {
            let axes = attributes.list("axes");
            let keeps = attributes.int("keepdims", 1) == 1;
            let sum = reduced(x, axes, keeps, |sum, value| sum + value, 0.0)?;
            let n = x.data.len() as f64 / sum.data.len().max(1) as f64;
            floats(&sum, |sum| sum / n as f32, |sum| sum / n)
        }
        Kind::ReduceMax => {
            let keeps = attributes.int("keepdims", 1) == 1;
            let larger = |a: f64, b: f64| if a > b || a.is_nan() { a } else { b };
            reduced(x, attributes.list("axes"), keeps, larger, f64::NEG_INFINITY)
        }
        Kind::Softmax => softmax(x, attributes.int("axis", -1)),
        Kind::LayerNormalization => {
            let epsilon = attributes.float("epsilon", 1e-5);
            layer_norm(x, input(1)?.f32s()?, input(2)?.f32s()?, epsilon)
        }
        Kind::MatMul => matrix::product(x, input(1)?),
        Kind::Conv => matrix::convolution(x, input(1)?, input(2)?, attributes.list("strides")),
    }
}

fn floats(x: &Tensor, f: impl Fn(f32) -> f32, g: impl Fn(f64) -> f64) -> Result<Tensor, Error> {
    let data = match &x.data {
        Data::F32(values) => Data::F32(values.iter().map(|&x| f(x)).collect()),
        Data::F64(values) => Data::F64(values.iter().map(|&x| g(x)).collect()),
        _ => return Err(damaged("agent.onnx: an operation on floats reads another type")),
    };
    Tensor::new(x.dims.clone(), data)
}

/// In double precision.
fn exactly(x: &Tensor, f: impl Fn(f64) -> f64) -> Result<Tensor, Error> {
    floats(x, |x| f(f64::from(x)) as f32, &f)
}

fn scalar(x: &Tensor) -> Result<f32, Error> {
    x.f32s()?.first().copied().ok_or_else(|| damaged("agent.onnx: a number is missing"))
}

/// `f` of the elements of both, with shared axes repeated.
fn broadcast<T: Copy, U>(
    [a, b]: [(&[T], &[usize]); 2],
    to: &[usize],
    f: impl Fn(T, T) -> U,
) -> Vec<U> {
    let ((a, a_dims), (b, b_dims)) = (a, b);
    if a_dims == b_dims {
        return a.iter().zip(b).map(|(&a, &b)| f(a, b)).collect();
    }
    if b.len() == 1 && a_dims == to {
        return a.iter().map(|&a| f(a, b[0])).collect();
    }
    // The same row for each row.
    if a_dims == to && a_dims.ends_with(b_dims) && !b.is_empty() {
        return a
            .chunks_exact(b.len())
            .flat_map(|row| row.iter().zip(b))
            .map(|(&a, &b)| f(a, b))
            .collect();
    }
    let (a_places, b_places) = (places(a_dims, to), places(b_dims, to));
    a_places.into_iter().zip(b_places).map(|(at, bt)| f(a[at], b[bt])).collect()
}

fn paired(
    a: &Tensor,
    b: &Tensor,
    f: impl Fn(f32, f32) -> f32,
    g: impl Fn(f64, f64) -> f64,
    h: impl Fn(i64, i64) -> i64,
) -> Result<Tensor, Error> {
    let dims = common(&a.dims, &b.dims)?;
    let data = match (&a.data, &b.data) {
        (Data::F32(x), Data::F32(y)) => {
            Data::F32(broadcast([(x, &a.dims), (y, &b.dims)], &dims, f))
        }
        (Data::F64(x), Data::F64(y)) => {
            Data::F64(broadcast([(x, &a.dims), (y, &b.dims)], &dims, g))
        }
        (Data::I64(x), Data::I64(y)) => {
            Data::I64(broadcast([(x, &a.dims), (y, &b.dims)], &dims, h))
        }
        _ => return Err(damaged("agent.onnx: an operation reads two types")),
    };
    Tensor::new(dims, data)
}

fn compared(a: &Tensor, b: &Tensor, f: impl Fn(f64, f64) -> bool) -> Result<Tensor, Error> {
    let dims = common(&a.dims, &b.dims)?;
    let data = match (&a.data, &b.data) {
        (Data::F64(x), Data::F64(y)) => {
            broadcast([(x, &a.dims), (y, &b.dims)], &dims, |a, b| i64::from(f(a, b)))
        }
        _ => return Err(damaged("agent.onnx: a comparison of another type than 64-bit floats")),
    };
    Tensor::new(dims, Data::I64(data))
}

fn chosen(flags: &Tensor, a: &Tensor, b: &Tensor) -> Result<Tensor, Error> {
    let dims = common(&common(&flags.dims, &a.dims)?, &b.dims)?;
    let wide = |x: &Tensor| {
        if x.dims == dims { Ok(x.clone()) } else { x.picked(dims.clone(), &places(&x.dims, &dims)) }
    };
    let (flags, a, b) = (wide(flags)?, wide(a)?, wide(b)?);
    let (Data::F64(x), Data::F64(y)) = (&a.data, &b.data) else {
        return Err(damaged("agent.onnx: a selection of another type than 64-bit floats"));
    };
    let pairs = x.iter().zip(y).zip(flags.i64s()?);
    let data = pairs.map(|((&x, &y), &flag)| if flag == 1 { x } else { y }).collect();
    Tensor::new(dims, Data::F64(data))
}

fn cast(x: &Tensor, to: i64) -> Result<Tensor, Error> {
    macro_rules! all {
        ($type:ty) => {
            match &x.data {
                Data::F32(values) => values.iter().map(|&x| x as $type).collect(),
                Data::F64(values) => values.iter().map(|&x| x as $type).collect(),
                Data::I64(values) => values.iter().map(|&x| x as $type).collect(),
                Data::U8(values) => values.iter().map(|&x| x as $type).collect(),
            }
        };
    }
    let data = match to {
        1 => Data::F32(all!(f32)),
        7 => Data::I64(all!(i64)),
        11 => Data::F64(all!(f64)),
        _ => return Err(damaged(format!("agent.onnx: a cast to the unknown type {to}"))),
    };
    Tensor::new(x.dims.clone(), data)
}

fn transposed(x: &Tensor, order: &[i64]) -> Result<Tensor, Error> {
    let order: Vec<usize> = order.iter().map(|&axis| x.axis(axis)).collect::<Result<_, _>>()?;
    let mut seen = vec![false; x.dims.len()];
    order.iter().for_each(|&axis| seen[axis] = true);
    if order.len() != x.dims.len() || seen.contains(&false) {
        return Err(damaged("agent.onnx: a transposition does not name each axis once"));
    }
    let dims: Vec<usize> = order.iter().map(|&axis| x.dims[axis]).collect();
    let stride = |axis: usize| -> usize { x.dims[axis + 1..].iter().product() };
    let strides: Vec<usize> = order.iter().map(|&axis| stride(axis)).collect();
    count(&dims)?;
    x.picked(dims.clone(), &walk(&dims, &strides))
}

fn concat(parts: &[&Tensor], axis: i64) -> Result<Tensor, Error> {
    let first = parts[0];
    let axis = first.axis(axis)?;
    let rest = |dims: &[usize]| [&dims[..axis], &dims[axis + 1..]].concat();
    let fits = |part: &&Tensor| {
        part.dims.len() == first.dims.len()
            && rest(&part.dims) == rest(&first.dims)
            && std::mem::discriminant(&part.data) == std::mem::discriminant(&first.data)
    };
    if !parts.iter().all(fits) {
        return Err(damaged("agent.onnx: tensors of other shapes are concatenated"));
    }
    let mut dims = first.dims.clone();
    dims[axis] = parts.iter().map(|part| part.dims[axis]).sum();
    count(&dims)?;
    let [before, _, after] = first.around(axis);
    // Places in all parts, one after the other.
    let mut starts = Vec::new();
    let mut total = 0;
    for part in parts {
        starts.push(total);
        total += part.data.len();
    }
    let mut all = Vec::with_capacity(total);
    for row in 0..before {
        for (part, start) in parts.iter().zip(&starts) {
            let n = part.dims[axis] * after;
            all.extend(start + row * n..start + (row + 1) * n);
        }
    }
    let joined = match &first.data {
        Data::F32(_) => {
            let mut values = Vec::with_capacity(total);
            for part in parts {
                values.extend_from_slice(part.f32s()?);
            }
            Data::F32(values)
        }
        Data::I64(_) => {
            let mut values = Vec::with_capacity(total);
            for part in parts {
                values.extend_from_slice(part.i64s()?);
            }
            Data::I64(values)
        }
        _ => return Err(damaged("agent.onnx: tensors of an unusual type are concatenated")),
    };
    Tensor::new(vec![total], joined)?.picked(dims, &all)
}

fn sliced(x: &Tensor, from: &Tensor, to: &Tensor, axis: &Tensor) -> Result<Tensor, Error> {
    let one = |of: &Tensor| {
        let first = of.i64s()?.first().copied();
        first.ok_or_else(|| damaged("agent.onnx: a slice lacks a number"))
    };
    let axis = x.axis(one(axis)?)?;
    let (from, to) = (one(from)?, one(to)?);
    let size = x.dims[axis] as i64;
    if !(0 <= from && from <= to && to <= size) {
        return Err(damaged(format!("agent.onnx: a slice {from}..{to} of {size} elements")));
    }
    let (from, to) = (from as usize, to as usize);
    let [before, size, after] = x.around(axis);
    let mut dims = x.dims.clone();
    dims[axis] = to - from;
    count(&dims)?;
    let rows = (0..before).flat_map(|row| (row * size + from) * after..(row * size + to) * after);
    x.picked(dims, &rows.collect::<Vec<_>>())
}

fn gathered(x: &Tensor, indices: &Tensor, axis: i64) -> Result<Tensor, Error> {
    if x.axis(axis)? != 0 {
        return Err(damaged("agent.onnx: only rows are looked up"));
    }
    let [_, size, after] = x.around(0);
    let dims = [&indices.dims, &x.dims[1..]].concat();
    let mut all = Vec::with_capacity(count(&dims)?);
    for &index in indices.i64s()? {
        let row = usize::try_from(index).ok().filter(|row| *row < size);
        let row = row.ok_or_else(|| damaged(format!("row {index} of a table of {size}")))?;
        all.extend(row * after..(row + 1) * after);
    }
    x.picked(dims, &all)
}

fn elements(x: &Tensor, indices: &Tensor, axis: i64) -> Result<Tensor, Error> {
    let axis = x.axis(axis)?;
    let rest = |dims: &[usize]| [&dims[..axis], &dims[axis + 1..]].concat();
    if indices.dims.len() != x.dims.len() || rest(&indices.dims) != rest(&x.dims) {
        return Err(damaged("agent.onnx: indices of another shape"));
    }
    let ([_, size, after], [_, n, _]) = (x.around(axis), indices.around(axis));
    let mut all = Vec::new();
    for (place, &index) in indices.i64s()?.iter().enumerate() {
        let index = usize::try_from(index).ok().filter(|index| *index < size);
        let index = index.ok_or_else(|| damaged("agent.onnx: an index is out of range"))?;
        let row = place / (n * after).max(1);
        all.push((row * size + index) * after + place % after);
    }
    x.picked(indices.dims.clone(), &all)
}

/// The place of the largest element along an axis; the first of equals.
fn largest(x: &Tensor, attributes: &Attributes) -> Result<Tensor, Error> {
    let axis = x.axis(attributes.int("axis", 0))?;
    let [before, size, after] = x.around(axis);
    if size == 0 {
        return Err(damaged("agent.onnx: the largest of no elements"));
    }
    let Tensor { data: Data::F64(values), .. } = cast(x, 11)? else { unreachable!("cast") };
    if values.iter().any(|value| value.is_nan()) {
        return Err(Error::not_finite());
    }
    let mut best = Vec::with_capacity(before * after);
    for row in 0..before {
        for column in 0..after {
            let at = |place: usize| values[(row * size + place) * after + column];
            best.push(
                (1..size).fold(0, |best, next| if at(next) > at(best) { next } else { best }),
            );
        }
    }
    let mut dims = x.dims.clone();
    match attributes.int("keepdims", 1) {
        1 => dims[axis] = 1,
        _ => drop(dims.remove(axis)),
    }
    Tensor::new(dims, Data::I64(best.into_iter().map(|place| place as i64).collect()))
}

fn cumulative(x: &Tensor, axis: &Tensor, exclusive: bool) -> Result<Tensor, Error> {
    let axis = axis.i64s()?.first().copied().unwrap_or(0);
    let axis = x.axis(axis)?;
    let [before, size, after] = x.around(axis);
    let Data::F64(values) = &x.data else {
        return Err(damaged("agent.onnx: a sum of another type than 64-bit floats"));
    };
    let mut sums = values.clone();
    for row in 0..before {
        for column in 0..after {
            let mut sum = 0.0;
            for place in 0..size {
                let at = (row * size + place) * after + column;
                let value = values[at];
                sums[at] = if exclusive { sum } else { sum + value };
                sum += value;
            }
        }
    }
    Tensor::new(x.dims.clone(), Data::F64(sums))
}

/// `f` over the axes, in double precision.
fn reduced(
    x: &Tensor,
    axes: &[i64],
    keeps: bool,
    f: impl Fn(f64, f64) -> f64,
    start: f64,
) -> Result<Tensor, Error> {
    let mut kept = x.dims.clone();
    for &axis in axes {
        kept[x.axis(axis)?] = 1;
    }
    let mut sums = vec![start; count(&kept)?];
    let to = places(&kept, &x.dims);
    macro_rules! add {
        ($values:expr) => {
            for (value, place) in $values.iter().zip(to) {
                sums[place] = f(sums[place], f64::from(*value));
            }
        };
    }
    let data = match &x.data {
        Data::F32(values) => {
            add!(values);
            Data::F32(sums.into_iter().map(|sum| sum as f32).collect())
        }
        Data::F64(values) => {
            add!(values);
            Data::F64(sums)
        }
        _ => return Err(damaged("agent.onnx: an operation on floats reads another type")),
    };
    let mut dims = kept;
    if !keeps {
        let gone: Vec<usize> = axes.iter().map(|&axis| x.axis(axis)).collect::<Result<_, _>>()?;
        dims = dims
            .into_iter()
            .enumerate()
            .filter(|(at, _)| !gone.contains(at))
            .map(|(_, n)| n)
            .collect();
    }
    Tensor::new(dims, data)
}

/// Along the last axis.
fn softmax(x: &Tensor, axis: i64) -> Result<Tensor, Error> {
    let axis = x.axis(axis)?;
    if axis + 1 != x.dims.len() {
        return Err(damaged("agent.onnx: a softmax along another axis than the last"));
    }
    let n = x.dims[axis].max(1);
    macro_rules! rows {
        ($values:expr, $type:ty) => {{
            let exp = |x: $type| math::exp(f64::from(x)) as $type;
            let mut values = $values.clone();
            for row in values.chunks_exact_mut(n) {
                let most = row.iter().copied().fold(<$type>::NEG_INFINITY, <$type>::max);
                row.iter_mut().for_each(|x| *x = exp(*x - most));
                let sum: $type = row.iter().sum();
                row.iter_mut().for_each(|x| *x /= sum);
            }
            values
        }};
    }
    let data = match &x.data {
        Data::F32(values) => Data::F32(rows!(values, f32)),
        Data::F64(values) => Data::F64(rows!(values, f64)),
        _ => return Err(damaged("agent.onnx: a softmax of whole numbers")),
    };
    Tensor::new(x.dims.clone(), data)
}

fn layer_norm(x: &Tensor, weight: &[f32], bias: &[f32], epsilon: f32) -> Result<Tensor, Error> {
    let n = weight.len();
    if n == 0 || bias.len() != n || x.dims.last() != Some(&n) {
        return Err(damaged("agent.onnx: a layer norm of another width"));
    }
    let mut values = x.f32s()?.to_vec();
    for row in values.chunks_exact_mut(n) {
        let mean = row.iter().sum::<f32>() / n as f32;
        let variance = row.iter().map(|x| (x - mean) * (x - mean)).sum::<f32>() / n as f32;
        let scale = 1.0 / (variance + epsilon).sqrt();
        for (x, (weight, bias)) in row.iter_mut().zip(weight.iter().zip(bias)) {
            *x = (*x - mean) * scale * weight + bias;
        }
    }
    Tensor::new(x.dims.clone(), Data::F32(values))
}

/// The same elements along the outermost axis moved up by one row, with `row` as the last.
///
/// # Errors
/// When the row has another length or type.
pub fn push(x: &mut Tensor, row: &Tensor) -> Result<(), Error> {
    let n = row.data.len();
    if x.data.len() % n.max(1) != 0 || x.data.len() < n {
        return Err(Error::Call(format!("{n} numbers for a row of {:?}", x.dims)));
    }
    macro_rules! shift {
        ($values:expr, $row:expr) => {{
            $values.copy_within(n.., 0);
            let start = $values.len() - n;
            $values[start..].copy_from_slice($row);
        }};
    }
    match (&mut x.data, &row.data) {
        (Data::F32(values), Data::F32(row)) => shift!(values, row),
        (Data::I64(values), Data::I64(row)) => shift!(values, row),
        (Data::U8(values), Data::U8(row)) => shift!(values, row),
        _ => return Err(Error::Call("numbers of another type than the agent's".into())),
    }
    Ok(())
}

/// Zeros of a schema's element type.
///
/// # Errors
/// When no input has this type.
pub fn zeros(dims: &[usize], elem_type: i64) -> Result<Tensor, Error> {
    let n = count(dims)?;
    let data = match elem_type {
        1 => Data::F32(vec![0.0; n]),
        2 => Data::U8(vec![0; n]),
        7 => Data::I64(vec![0; n]),
        _ => return Err(damaged(format!("agent.onnx: an input of the unknown type {elem_type}"))),
    };
    Tensor::new(dims.to_vec(), data)
}
