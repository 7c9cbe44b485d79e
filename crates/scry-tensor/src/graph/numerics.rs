//! Where numbers of a plan go wrong: the first NaN, and magnitudes that `f16` does not hold.

use std::fmt::Write as _;
use std::sync::Arc;

use super::bound_graph::{BoundGraph, BoundNode};
use super::compiled::Plan;
use super::node::Content;
use super::reference::Replaced;
use super::row_reference::RowOrders;
use crate::dtype::DType;
use crate::error::{Call, Error, ErrorKind, Result};
use crate::op::Op;
use crate::shape::{Layout, Shape, coordinates};
use crate::stored::Stored;
use crate::tensor::Tensor;
use crate::waiting::{Waiting, now};

/// The largest `f16`.
const LARGEST_F16: f64 = 65504.0;

/// An operation whose results come near the largest `f16`: see [`Plan::audit_f16`].
///
/// ```
/// use scry_tensor::{DType, Device, Graph, LargeResult, Tensor};
///
/// let gpu = Device::open("cpu")?;
/// let g = Graph::new(&gpu)?;
/// let scope = g.scope("head");
/// let plan = g.compile(&[g.input("x", [1])?.mul(1e4)?])?;
/// drop(scope);
/// let found: Vec<LargeResult> = plan.audit_f16(&[("x", &Tensor::new([5.0f32], &gpu)?)])?;
/// assert_eq!((found[0].op, found[0].scope.as_str()), ("Tensor::mul", "head"));
/// assert_eq!((found[0].dtype, found[0].largest), (DType::F32, 5e4));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LargeResult {
    /// The function that recorded it, such as `Tensor::add`.
    pub op: &'static str,
    /// The line that recorded it.
    pub line: String,
    /// The scope in which it was recorded.
    pub scope: String,
    /// The element type of the result.
    pub dtype: DType,
    /// The largest magnitude of the result; infinite if `f16` overflowed.
    pub largest: f64,
}

impl Plan {
    /// Runs the plan with NaN detection (PyTorch's `detect_anomaly`): first runs the recorded
    /// operations one by one, and fails at the first whose result has a NaN although no operand has
    /// one. States change only if there is no error. It is slow, and reads all results.
    ///
    /// ```
    /// use scry_tensor::{Device, Graph, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let g = Graph::new(&gpu)?;
    /// let x = g.input("x", [3])?;
    /// let plan = g.compile(&[(x.log()? + 1.0)?])?;
    /// let data = Tensor::new([1.0f32, 2.0, -4.0], &gpu)?;
    /// let error = plan.run_checked(&[("x", &data)]).unwrap_err();
    /// assert_eq!(error.function(), "Tensor::log");
    /// let text = "the result is NaN at index [2] of [3]; its operands there: -4";
    /// assert!(error.to_string().contains(text), "{error}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::NotANumber`] for the first operation with a NaN whose operands have none, or an
    /// input, parameter or state with a NaN; otherwise as [`Plan::run`].
    #[doc(alias = "detect_anomaly")]
    #[track_caller]
    pub fn run_checked(&self, inputs: &[(&str, &Tensor)]) -> Result<Vec<Tensor>> {
        let call = Call::new("Plan::run_checked");
        now(self.run_checked_by(call, &self.inputs(call, inputs)?, Waiting::Blocking))
    }

    /// Checks and runs inputs in the order of the graph.
    pub(super) async fn run_checked_by(
        &self,
        call: Call,
        inputs: &[Arc<Stored>],
        waiting: Waiting,
    ) -> Result<Vec<Tensor>> {
        let (graph, values) = self.computed(call, inputs, waiting).await?;
        for (node, value) in graph.nodes.iter().zip(&values) {
            let Some(elements) = value.floats(call, waiting).await? else { continue };
            let Some(position) = elements.iter().position(|x| x.is_nan()) else { continue };
            // Nodes before it have no NaN.
            return Err(not_a_number(call, self, node, &values, (position, waiting)).await?);
        }
        self.run_by(call, inputs, waiting).await
    }

    /// Runs the recorded operations one by one, and returns those whose largest magnitude is at
    /// least half of 65504, the largest `f16`. Operations of `f32` and `bf16` are included: they
    /// must not be converted to `f16`. States do not change.
    ///
    /// ```
    /// use scry_tensor::{DType, Device, Graph, Tensor};
    ///
    /// let gpu = Device::open("cpu")?;
    /// let g = Graph::new(&gpu)?;
    /// let x = g.input("x", [2])?.cast(DType::F16)?;
    /// let plan = g.compile(&[x.mul(2.0)?.square()?])?;
    /// let found = plan.audit_f16(&[("x", &Tensor::new([3.0f32, 200.0], &gpu)?)])?;
    /// assert_eq!((found.len(), found[0].op), (1, "Tensor::square"));
    /// assert_eq!(found[0].largest, f64::INFINITY);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Plan::run`].
    #[track_caller]
    pub fn audit_f16(&self, inputs: &[(&str, &Tensor)]) -> Result<Vec<LargeResult>> {
        let call = Call::new("Plan::audit_f16");
        now(self.audit_f16_by(call, &self.inputs(call, inputs)?, Waiting::Blocking))
    }

    /// Runs the recorded operations of inputs in the order of the graph.
    pub(super) async fn audit_f16_by(
        &self,
        call: Call,
        inputs: &[Arc<Stored>],
        waiting: Waiting,
    ) -> Result<Vec<LargeResult>> {
        let (graph, values) = self.computed(call, inputs, waiting).await?;
        let mut found = Vec::new();
        for (node, value) in graph.nodes.iter().zip(&values) {
            let Some(elements) = value.floats(call, waiting).await? else { continue };
            let largest = elements.iter().fold(0.0, |largest: f64, x| largest.max(x.abs()));
            if largest >= LARGEST_F16 / 2.0 {
                found.push(LargeResult {
                    op: node.call.op,
                    line: format!("{}:{}", node.call.at.file(), node.call.at.line()),
                    scope: node.scope.to_string(),
                    dtype: node.dtype,
                    largest,
                });
            }
        }
        Ok(found)
    }

    /// Computes all recorded operations, with the states at this time: what later runs write is not
    /// seen.
    async fn computed(
        &self,
        call: Call,
        inputs: &[Arc<Stored>],
        waiting: Waiting,
    ) -> Result<(BoundGraph, Vec<Stored>)> {
        let graph = self.shared().graph.bind(&self.sizes(call, inputs)?)?;
        let (orders, mut replaced) = (RowOrders::new(), Replaced::new());
        let states = waiting.submit(call, self.device(), || self.copied_states(call)).await?;
        let given = (inputs, &states[..]);
        let (values, _) = self.one_by_one(&graph, given, &orders, &mut replaced, waiting).await?;
        Ok((graph, values))
    }
}

impl Stored {
    /// Returns the elements, if they are floats.
    pub(super) async fn floats(&self, call: Call, waiting: Waiting) -> Result<Option<Vec<f64>>> {
        Ok(Some(match self.dtype {
            DType::F32 => wide(self.read_by::<f32>(call, waiting).await?),
            DType::F16 => wide(self.read_by::<half::f16>(call, waiting).await?),
            DType::BF16 => wide(self.read_by::<half::bf16>(call, waiting).await?),
            _ => return Ok(None),
        }))
    }
}

fn wide<T: Into<f64>>(elements: Vec<T>) -> Vec<f64> {
    elements.into_iter().map(Into::into).collect()
}

/// Returns the error for a node with a NaN at a position, the first one.
async fn not_a_number(
    call: Call,
    plan: &Plan,
    node: &BoundNode,
    values: &[Stored],
    (position, waiting): (usize, Waiting),
) -> Result<Error> {
    let (shape, graph) = (&node.shape, &plan.shared().graph);
    let index = coordinates(position, shape);
    let given = match &node.content {
        Content::Input(n) => Some(format!("input `{}`", graph.inputs[*n].name)),
        Content::Param(n) => Some(match &graph.params[*n].0 {
            Some(name) => format!("parameter `{name}`"),
            None => "a tensor in memory".to_owned(),
        }),
        Content::State(n) => Some(format!("state `{}`", graph.states[*n].name)),
        _ => None,
    };
    if let Some(what) = given {
        let problem = format!("{what} contains NaN at index {index:?} of {shape}");
        let help = "check the data that is passed to the run";
        return Ok(call.error(ErrorKind::NotANumber, problem, help));
    }
    let mut problem = format!("the result is NaN at index {index:?} of {shape}");
    let mut operands = String::new();
    for source in &node.sources {
        let value = &values[source.index()];
        let text = match &node.content {
            Content::Op(Op::Map(..)) => element(node.call, value, shape, position, waiting).await?,
            _ => extent(node.call, value, waiting).await?,
        };
        let _ = write!(operands, "{}{text}", if operands.is_empty() { "" } else { ", " });
    }
    if !operands.is_empty() {
        let place = if matches!(&node.content, Content::Op(Op::Map(..))) { " there" } else { "" };
        let _ = write!(problem, "; its operands{place}: {operands}");
    }
    let help = "0 / 0, inf - inf, 0 * inf, and the logarithm and the root of negative numbers are \
                NaN: check where the operands come from";
    Ok(node.call.error(ErrorKind::NotANumber, problem, help).in_scope(&node.scope))
}

/// Returns an operand's element at a position of the shape to which it is broadcast, as text.
async fn element(
    call: Call,
    x: &Stored,
    shape: &Shape,
    position: usize,
    waiting: Waiting,
) -> Result<String> {
    let own = Layout::contiguous(x.shape().clone());
    let own = own.expand(shape).unwrap_or(own);
    let at = coordinates(position, shape);
    let at = at.iter().zip(&own.strides).fold(0, |sum, (at, stride)| sum + *at as i64 * stride);
    let at = at as usize;
    Ok(match x.dtype {
        DType::I32 => x.read_by::<i32>(call, waiting).await?[at].to_string(),
        DType::U32 => x.read_by::<u32>(call, waiting).await?[at].to_string(),
        DType::Bool => x.read_by::<bool>(call, waiting).await?[at].to_string(),
        _ => x.floats(call, waiting).await?.map_or_else(String::new, |it| it[at].to_string()),
    })
}

/// Returns the shape and the range of an operand's elements as text.
async fn extent(call: Call, x: &Stored, waiting: Waiting) -> Result<String> {
    let elements = x.floats(call, waiting).await?.unwrap_or_default();
    let smallest = elements.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = elements.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    Ok(match elements.is_empty() {
        true => format!("{} {}", x.dtype, x.shape()),
        false => format!("{} {} from {smallest} to {largest}", x.dtype, x.shape()),
    })
}
