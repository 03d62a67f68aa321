//! The recipe of a materialized data set: all that its values depend on but the objects.

use pushdown::{
    part::{LabelType, PartFormat},
    pipeline::Digest,
};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The version of the documents and of the division into parts.
const VERSION: u32 = 1;
/// Name of the recipe in the target.
pub(super) const RECIPE_NAME: &str = "_recipe.json";
/// The most bytes of a recipe: class names are in it.
pub(super) const MAX_RECIPE_BYTES: u64 = 16 << 20;

/// What the values of a target are made of. The first run writes it before its first part; later ones go on by it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The version of the documents of a target.
    pub version: u32,
    /// `s3://bucket/prefix` of the objects.
    pub source: String,
    /// The pipeline in its canonical form.
    pub pipeline: String,
    /// Seed of the random steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Epoch of the random steps.
    pub epoch: u32,
    /// Versions of the step families, and of what runs models.
    pub engine: String,
    /// The format of the parts.
    pub format: PartFormat,
    /// The type of the labels, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<LabelType>,
    /// Names of the further columns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// Samples of a part, but of the last one. The first run chooses it.
    pub samples_per_part: u32,
}

impl Recipe {
    pub(super) const fn version() -> u32 {
        VERSION
    }

    /// The document, with a line break at its end.
    ///
    /// # Errors
    /// For a bug.
    pub(super) fn to_json(&self) -> Result<Vec<u8>> {
        document(self)
    }

    /// Reads a document.
    ///
    /// # Errors
    /// If the text is not a recipe.
    pub(super) fn parse(json: &[u8], name: &str) -> Result<Self> {
        serde_json::from_slice(json)
            .map_err(|error| Error::config(format!("{name} is no recipe of `pushdown materialize`: {error}")))
    }

    /// Digest of all that the values of a part depend on but its samples.
    pub(super) fn digest(&self) -> Result<Digest> {
        // What a part has does not depend on how many others there are.
        let recipe = Self {
            samples_per_part: 0,
            ..self.clone()
        };
        Ok(Digest::new(&recipe.to_json()?))
    }

    /// Checks that a target with this recipe may get the parts of `wanted`, which has the same number of samples per part then.
    ///
    /// # Errors
    /// If they differ, with the first difference.
    pub(super) fn check_same(&self, wanted: &Self, target: &str) -> Result<()> {
        let text = |format: PartFormat| format.to_string();
        let number = |seed: Option<u64>| seed.map_or_else(|| "none".to_owned(), |seed| seed.to_string());
        let json = |label: &Option<LabelType>| serde_json::to_string(label).unwrap_or_default();
        let differences = [
            ("version", self.version.to_string(), wanted.version.to_string()),
            ("source", self.source.clone(), wanted.source.clone()),
            ("pipeline", self.pipeline.clone(), wanted.pipeline.clone()),
            ("format", text(self.format), text(wanted.format)),
            ("seed", number(self.seed), number(wanted.seed)),
            ("epoch", self.epoch.to_string(), wanted.epoch.to_string()),
            ("labels", json(&self.label), json(&wanted.label)),
            ("columns", self.columns.join(", "), wanted.columns.join(", ")),
            ("engine", self.engine.clone(), wanted.engine.clone()),
        ];
        let other = differences.iter().find(|(_, found, expected)| found != expected);
        match other {
            None => Ok(()),
            Some((name, found, expected)) => Err(Error::config(format!(
                "{target} has parts of another recipe: expected the {name} `{}`, found `{}` in {RECIPE_NAME}; use another target",
                shortened(expected),
                shortened(found)
            ))),
        }
    }
}

/// A document as JSON for people, with a line break at its end.
pub(super) fn document(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut json = serde_json::to_vec_pretty(value)
        .map_err(|error| Error::internal("cannot write a document of a target").with_source(error))?;
    json.push(b'\n');
    Ok(json)
}

/// A text of a document, as long as an error shows it.
fn shortened(text: &str) -> String {
    const SHOWN: usize = 300;
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push_str("..");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut Recipe);

    fn recipe() -> Recipe {
        Recipe {
            version: Recipe::version(),
            source: "s3://photos/train/".to_owned(),
            pipeline: "decode | resize(8, 8) | encode(jpeg, 90)".to_owned(),
            seed: None,
            epoch: 0,
            engine: "decode=4 resample=4".to_owned(),
            format: PartFormat::Wds,
            label: None,
            columns: Vec::new(),
            samples_per_part: 1000,
        }
    }

    #[test]
    fn a_recipe_reads_its_own_document() {
        let json = recipe().to_json().unwrap();
        assert_eq!(Recipe::parse(&json, "_recipe.json").unwrap(), recipe());
        let error = Recipe::parse(b"{}", "s3://b/_recipe.json").unwrap_err();
        assert!(
            error.to_string().starts_with("s3://b/_recipe.json is no recipe"),
            "{error}"
        );
    }

    #[test]
    fn every_difference_but_the_size_of_parts_is_refused() {
        let own = recipe();
        let other = Recipe {
            samples_per_part: 7,
            ..recipe()
        };
        own.check_same(&other, "s3://b/").unwrap();
        assert_eq!(own.digest().unwrap(), other.digest().unwrap());
        let changes: [(&str, Change); 8] = [
            ("source", |recipe| recipe.source = "s3://photos/".to_owned()),
            ("pipeline", |recipe| recipe.pipeline = "decode".to_owned()),
            ("seed", |recipe| recipe.seed = Some(1)),
            ("epoch", |recipe| recipe.epoch = 1),
            ("engine", |recipe| recipe.engine = "decode=5".to_owned()),
            ("format", |recipe| recipe.format = PartFormat::Parquet),
            ("labels", |recipe| recipe.label = Some(LabelType::Int)),
            ("columns", |recipe| recipe.columns = vec!["cls".to_owned()]),
        ];
        for (name, change) in changes {
            let mut other = recipe();
            change(&mut other);
            let error = own.check_same(&other, "s3://b/").unwrap_err().to_string();
            assert!(error.contains(&format!("expected the {name} `")), "{error}");
            assert_ne!(own.digest().unwrap(), other.digest().unwrap(), "{name}");
        }
    }
}
