//! What computes models: the processor, or a GPU by CUDA.

use std::{fmt, str::FromStr};

use onnx_protobuf::{
    GraphProto, Message as _, ModelProto, NodeProto, OperatorSetIdProto, TypeProto, ValueInfoProto,
    type_proto,
};
use ort::ep::{self, ExecutionProviderDispatch};
use serde::Serialize;

use super::{
    files::Files,
    session::{Runtime, Session, Value},
};
use crate::{Error, Result};

/// An execution provider of ONNX Runtime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// The processor.
    #[default]
    Cpu,
    /// An NVIDIA GPU, the first one; what it has no kernels for runs on the processor.
    Cuda,
}

impl Provider {
    /// Whether it was compiled in: `cuda` by the feature of that name.
    pub const fn is_built(self) -> bool {
        match self {
            Self::Cpu => true,
            Self::Cuda => cfg!(feature = "cuda"),
        }
    }

    /// Its name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
        }
    }

    /// What a session asks, in this order, to take its operators. One that cannot be had is an error, so that nothing
    /// runs elsewhere than is said.
    pub(super) fn in_order(self) -> Vec<ExecutionProviderDispatch> {
        // Without an arena: it would keep the peak of memory for ever.
        let cpu = ep::CPU::default().with_arena_allocator(false).build();
        match self {
            Self::Cpu => vec![cpu],
            Self::Cuda => cuda().into_iter().chain([cpu]).collect(),
        }
    }
}

#[cfg(feature = "cuda")]
fn cuda() -> [ExecutionProviderDispatch; 1] {
    let cuda = ep::CUDA::default()
        // Its 10 bits of mantissa would be far beyond the tolerance between the two sides of a split.
        .with_tf32(false)
        // The exhaustive search would time algorithms anew for every size of a batch.
        .with_conv_algorithm_search(ep::cuda::ConvAlgorithmSearch::Heuristic)
        .with_arena_extend_strategy(ep::ArenaExtendStrategy::SameAsRequested)
        .build()
        .error_on_failure();
    [cuda]
}

/// Never asked for: [`Runtime::on`] refuses what was not compiled in.
#[cfg(not(feature = "cuda"))]
const fn cuda() -> [ExecutionProviderDispatch; 0] {
    []
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Provider {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda),
            other => Err(format!("`{other}` is neither cpu nor cuda")),
        }
    }
}

/// Runs a model of one node, which shows whether the library has the provider, and the provider its device.
pub(super) fn check(runtime: &Runtime) -> Result<()> {
    let session = Session::new(runtime, &doubling()?, &Files::default(), Some(0))?;
    let doubled = session.run(
        &[2],
        &[1.0, -3.0],
        |_, value| matches!(value, Value::Floats(_, [first, second]) if (*first, *second) == (2.0, -6.0)),
    )?;
    match doubled.as_slice() {
        [true] => Ok(()),
        _ => Err(Error::runtime("a sum of two numbers came out wrong")),
    }
}

/// `y = x + x`, of two numbers.
fn doubling() -> Result<Vec<u8>> {
    let port = |name: &str| {
        let tensor = type_proto::Tensor {
            elem_type: super::graph::FLOAT,
            ..type_proto::Tensor::default()
        };
        ValueInfoProto {
            name: name.to_owned(),
            type_: Some(TypeProto {
                value: Some(type_proto::Value::TensorType(tensor)),
                ..TypeProto::default()
            })
            .into(),
            ..ValueInfoProto::default()
        }
    };
    let node = NodeProto {
        op_type: "Add".to_owned(),
        input: vec!["x".to_owned(), "x".to_owned()],
        output: vec!["y".to_owned()],
        ..NodeProto::default()
    };
    let graph = GraphProto {
        name: "trial".to_owned(),
        node: vec![node],
        input: vec![port("x")],
        output: vec![port("y")],
        ..GraphProto::default()
    };
    let model = ModelProto {
        ir_version: 8,
        opset_import: vec![OperatorSetIdProto {
            version: 14,
            ..OperatorSetIdProto::default()
        }],
        graph: Some(graph).into(),
        ..ModelProto::default()
    };
    model
        .write_to_bytes()
        .map_err(|error| Error::internal(format!("an ONNX model that cannot be written: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for provider in [Provider::Cpu, Provider::Cuda] {
            assert_eq!(provider.name().parse(), Ok(provider));
        }
        let fault = "gpu".parse::<Provider>().unwrap_err();
        assert_eq!(fault, "`gpu` is neither cpu nor cuda");
    }
}
