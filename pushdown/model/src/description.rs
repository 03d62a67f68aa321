//! What readers know about a model without its weights: name, digest, shapes and cut points.

use serde::{Deserialize, Serialize};

use super::{
    Boundary, DataFile, ExcludedTensor, ModelCard, ModelFiles,
    data_file::{check_list, is_digest},
    files::FileDigests,
};
use pushdown_core::{DType, Error, Result, step::nearest};

/// How many similar names an error lists.
const SIMILAR_NAMES: usize = 3;

/// The description of a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelDescription {
    /// Name in pipelines.
    pub name: String,
    /// SHA-256 in hex: of the ONNX file, combined with the digests of its data files and of its card, if it has any.
    pub digest: String,
    /// Size of the ONNX file and its data files.
    pub bytes: u64,
    /// Data files: files next to the ONNX file that store weights, sorted by name. Each can be fetched by its own digest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<DataFile>,
    /// The one input.
    pub inputs: Vec<TensorSpec>,
    /// The output.
    pub outputs: Vec<TensorSpec>,
    /// Where the model can be cut, in the order of the layers. The last cut point is the output.
    pub cut_points: Vec<CutPoint>,
    /// Tensors that separate input and output but are not cut points, each with the reason.
    pub left_out: Vec<ExcludedTensor>,
    /// Whether several samples run in one batch. Otherwise they run one by one.
    pub batched: bool,
    /// Maximum bytes of the values that are live at the same time while one sample runs.
    pub working_bytes: u64,
    /// How to prepare an input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub card: Option<ModelCard>,
}

/// A tensor of f32 at a boundary of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorSpec {
    /// Name of the tensor.
    pub tensor: String,
    /// Its shape, without the batch axis.
    pub shape: Vec<usize>,
}

/// A tensor at which a model can be cut.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutPoint {
    /// Name of the tensor.
    pub tensor: String,
    /// Its shape, without the batch axis.
    pub shape: Vec<usize>,
    /// Its size in bytes, as f32.
    pub bytes: u64,
    /// Number of weights from the input to this tensor.
    pub parameters: u64,
    /// Multiply-accumulate operations from the input to this tensor, for one sample.
    pub macs: u64,
}

impl ModelDescription {
    /// Checks a description that was received: its digests become file names, and its sizes allocations.
    ///
    /// # Errors
    /// [`InvalidModel`](pushdown_core::ErrorKind::InvalidModel) with the first field that no model can have.
    pub(super) fn validate(&self) -> Result<()> {
        let name = &self.name;
        if self.inputs.len() != 1 || self.cut_points.is_empty() {
            return Err(Error::model(format!(
                "the model `{name}` has {} inputs and {} cut points, expected one input and its output",
                self.inputs.len(),
                self.cut_points.len()
            )));
        }
        if !is_digest(&self.digest) {
            return Err(Error::model(format!(
                "the model `{name}` has an invalid digest: expected 64 hex digits, found {:?}",
                self.digest
            )));
        }
        check_list(&self.files, self.bytes)
            .map_err(|fault| Error::model(format!("the model `{name}` has {fault}")))?;
        let inputs = self.inputs.iter().map(|input| &input.shape);
        let mut shapes = inputs.chain(self.cut_points.iter().map(|cut| &cut.shape));
        if let Some(shape) = shapes.find(|shape| !has_countable_bytes(shape)) {
            return Err(Error::model(format!(
                "the model `{name}` has a tensor of the shape {shape:?}, more than any value may have"
            )));
        }
        Ok(())
    }

    /// Compares the files of a model with the digests.
    ///
    /// # Errors
    /// [`InvalidModel`](pushdown_core::ErrorKind::InvalidModel) if a digest differs.
    pub fn check(&self, files: &ModelFiles) -> Result<()> {
        let digests = FileDigests::new(files);
        digests.check(&self.files)?;
        let found = digests.combined(self.card.as_ref())?;
        if found == self.digest {
            return Ok(());
        }
        Err(Error::model(format!(
            "the weights have the digest {found}, expected {}: have they been replaced?",
            self.digest
        )))
    }

    /// Name and shape of the tensor at a boundary.
    pub(super) fn tensor(&self, boundary: Boundary) -> (&str, &[usize]) {
        match boundary {
            Boundary::Input => {
                let input = &self.inputs[0];
                (&input.tensor, &input.shape)
            }
            Boundary::Cut(index) => {
                let cut = &self.cut_points[index];
                (&cut.tensor, &cut.shape)
            }
        }
    }

    /// The index of the cut point that `text` names: a tensor, or `cut:K` counted from 0.
    ///
    /// # Errors
    /// With the most similar names, and the reason if the tensor separates input and output but is not a cut point.
    pub(super) fn find_cut(&self, text: &str) -> Result<usize, String> {
        let cuts = &self.cut_points;
        let is_number =
            |digits: &&str| !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        let number = text.strip_prefix("cut:").filter(is_number);
        let index = match number {
            Some(number) => number.parse::<usize>().ok().filter(|index| *index < cuts.len()),
            None => cuts.iter().position(|cut| cut.tensor == text),
        };
        index.ok_or_else(|| self.unknown_cut(text, number.is_some()))
    }

    fn unknown_cut(&self, text: &str, is_number: bool) -> String {
        let excluded = self.left_out.iter().find(|excluded| excluded.tensor == text);
        let reason = excluded
            .map(|excluded| format!(" ({})", excluded.reason))
            .unwrap_or_default();
        let names = self.cut_points.iter().map(|cut| cut.tensor.as_str());
        let similar: Vec<String> = if is_number {
            // The number is too large: list the last cut points.
            let last = names.enumerate().rev().take(SIMILAR_NAMES);
            last.map(|(index, name)| format!("cut:{index} ({name})"))
                .collect()
        } else {
            let similar = nearest(names, text).into_iter().take(SIMILAR_NAMES);
            similar.map(str::to_owned).collect()
        };
        format!(
            "`{text}` is not a cut point of the model `{}`{reason}; the nearest of its {} are {}",
            self.name,
            self.cut_points.len(),
            similar.join(", ")
        )
    }
}

/// Whether the bytes of a tensor of f32 fit in `usize`.
fn has_countable_bytes(shape: &[usize]) -> bool {
    let bytes = shape
        .iter()
        .try_fold(DType::F32.size(), |bytes, extent| bytes.checked_mul(*extent));
    bytes.is_some()
}
