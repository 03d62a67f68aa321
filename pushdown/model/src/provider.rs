//! Execution providers of ONNX Runtime: the CPU, or a GPU through CUDA.

use std::{fmt, str::FromStr};

use onnx_protobuf::{
    GraphProto, Message as _, ModelProto, NodeProto, OperatorSetIdProto, TypeProto, ValueInfoProto,
    type_proto,
};
use ort::ep::{self, ExecutionProviderDispatch};
use serde::Serialize;

use super::{
    files::ModelFiles,
    session::{Runtime, Session, TensorView},
};
use pushdown_core::{Error, Result};

/// An execution provider of ONNX Runtime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// The CPU.
    #[default]
    Cpu,
    /// The first NVIDIA GPU. Operators without a CUDA kernel run on the CPU.
    Cuda,
}

impl Provider {
    /// Whether it is compiled in. `cuda` needs the feature of that name.
    pub const fn is_built(self) -> bool {
        match self {
            Self::Cpu => true,
            Self::Cuda => cfg!(feature = "cuda"),
        }
    }

    /// The name in settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Cuda => "cuda",
        }
    }

    /// The providers to which a session offers its operators, in this order. If one is unavailable the session fails, so
    /// that no model runs on another device than configured.
    pub(super) fn dispatch_order(self) -> Vec<ExecutionProviderDispatch> {
        // Without an arena: it would never release its peak memory.
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
        // TF32 has 10 bits of mantissa: results would differ by far more than the tolerance between the tiers of a split.
        .with_tf32(false)
        // The exhaustive search would time the algorithms again for every batch size.
        .with_conv_algorithm_search(ep::cuda::ConvAlgorithmSearch::Heuristic)
        .with_arena_extend_strategy(ep::ArenaExtendStrategy::SameAsRequested)
        .build()
        .error_on_failure();
    [cuda]
}

/// Unreachable: [`Runtime::with_provider`] refuses a provider that is not compiled in.
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
            other => Err(format!(
                "unknown execution provider `{other}`: expected cpu or cuda"
            )),
        }
    }
}

/// Runs a model of one node, to check that the library has the provider, and the provider a device.
pub(super) fn check(runtime: &Runtime) -> Result<()> {
    let session = Session::new(runtime, &doubling()?, &ModelFiles::default(), Some(0))?;
    let doubled = session.run(
        &[2],
        &[1.0, -3.0],
        |_, value| matches!(value, TensorView::Floats(_, [first, second]) if (*first, *second) == (2.0, -6.0)),
    )?;
    match doubled.as_slice() {
        [true] => Ok(()),
        _ => Err(Error::runtime("wrong sum of two numbers")),
    }
}

/// The model `y = x + x`.
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
        .map_err(|error| Error::internal(format!("the ONNX model cannot be serialized: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for provider in [Provider::Cpu, Provider::Cuda] {
            assert_eq!(provider.name().parse(), Ok(provider));
        }
        let fault = "gpu".parse::<Provider>().unwrap_err();
        assert_eq!(fault, "unknown execution provider `gpu`: expected cpu or cuda");
    }
}
