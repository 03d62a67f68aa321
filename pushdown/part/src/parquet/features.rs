//! The features of Hugging Face `datasets`, in the metadata of a file as its releases from 4.0 on write them.

use pushdown_core::{DType, Error, Result};
use serde::{Serialize, Serializer};

use super::schema::{ArrayColumn, IMAGE, KEY, LABEL, SCALE, VALUE, ValueColumn};
use crate::{PartSpec, label::LabelType};

/// The key in metadata.
pub(super) const METADATA_KEY: &str = "huggingface";

/// The metadata under this key.
#[derive(Serialize)]
struct Metadata<'a> {
    info: Info<'a>,
}

#[derive(Serialize)]
struct Info<'a> {
    #[serde(serialize_with = "in_order")]
    features: Vec<(&'a str, Feature<'a>)>,
}

#[derive(Serialize)]
#[serde(tag = "_type")]
enum Feature<'a> {
    Value { dtype: &'static str },
    Image,
    ClassLabel { names: &'a [String] },
    List { feature: Box<Self>, length: usize },
}

/// The features of a part, as JSON.
pub(super) fn features(spec: &PartSpec, value: &ValueColumn) -> Result<String> {
    let mut features = vec![(KEY, Feature::Value { dtype: "string" })];
    match value {
        ValueColumn::Image(_) => features.push((IMAGE, Feature::Image)),
        ValueColumn::Bytes => features.push((VALUE, Feature::Value { dtype: "binary" })),
        ValueColumn::Array(array) => {
            features.push((VALUE, lists(array)));
            if array.is_quantized {
                features.push((SCALE, Feature::Value { dtype: "float32" }));
            }
        }
    }
    features.extend(spec.label.as_ref().map(|label| {
        let feature = match label {
            LabelType::Class { names } => Feature::ClassLabel { names },
            LabelType::Int => Feature::Value { dtype: "int64" },
            LabelType::Float => Feature::Value { dtype: "float64" },
            LabelType::Text => Feature::Value { dtype: "string" },
        };
        (LABEL, feature)
    }));
    let columns = spec.columns.iter();
    features.extend(columns.map(|name| (name.as_str(), Feature::Value { dtype: "binary" })));
    let metadata = Metadata {
        info: Info { features },
    };
    serde_json::to_string(&metadata).map_err(|error| Error::internal(error.to_string()))
}

fn lists(array: &ArrayColumn) -> Feature<'static> {
    let dtype = match array.dtype {
        DType::U8 => "uint8",
        DType::I8 => "int8",
        DType::I32 => "int32",
        DType::I64 => "int64",
        DType::F16 => "float16",
        DType::Bf16 => "uint16",
        DType::F32 => "float32",
    };
    let extents = array.shape.iter().rev();
    extents.fold(Feature::Value { dtype }, |feature, length| Feature::List {
        feature: Box::new(feature),
        length: *length,
    })
}

/// An object in the order of the columns. That of a map in `serde_json` depends on the features it is built with.
fn in_order<S: Serializer>(features: &Vec<(&str, Feature<'_>)>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(features.iter().map(|(name, feature)| (name, feature)))
}
