//! Labels, the objects that they belong to, and the split into training and held-out samples.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Write as _},
    path::Path,
};

use anyhow::Context as _;
use pushdown::pipeline::Digest;
use pushdown_client::store::{Object, Objects};

use crate::arguments::Location;

/// One in this many samples is held out.
const HELD_OUT: usize = 4;
/// The most keys in a note.
const MAX_LISTED_KEYS: usize = 3;

/// Labelled objects, the training samples first.
#[derive(Debug)]
pub(crate) struct Dataset {
    /// The training samples, then the held-out ones, each in the order of their keys.
    pub(crate) objects: Objects,
    /// Whether each sample is positive.
    pub(crate) labels: Vec<bool>,
    /// Number of training samples.
    pub(crate) train: usize,
}

/// Parses lines of `key,label`. Labels of at least `threshold` are positive.
pub(crate) fn read(path: &Path, threshold: f64) -> anyhow::Result<BTreeMap<String, bool>> {
    let text =
        fs::read_to_string(path).with_context(|| format!("cannot read the labels {}", path.display()))?;
    let invalid = |line: usize, found: &str| {
        anyhow::anyhow!(
            "{}, line {}: {found}, expected `key,label` with a label of 0, 1 or a probability",
            path.display(),
            line + 1
        )
    };
    let mut labels = BTreeMap::new();
    for (number, line) in text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty())
    {
        let Some((key, label)) = line.rsplit_once(',') else {
            return Err(invalid(number, &format!("found `{line}`")));
        };
        let (key, label) = (key.trim().trim_matches('"'), label.trim());
        let positive = match label.parse::<f64>() {
            Ok(label) if (0.0..=1.0).contains(&label) => label >= threshold,
            // A header line.
            Err(_) if number == 0 => continue,
            _ => return Err(invalid(number, &format!("found the label `{label}`"))),
        };
        if labels.insert(key.to_owned(), positive) == Some(!positive) {
            return Err(invalid(number, &format!("found another label for `{key}`")));
        }
    }
    Ok(labels)
}

impl Dataset {
    /// The objects with a label for their key, with or without the prefix, at most `samples` of them. Lists objects without a
    /// label, and labels without an object, on stderr.
    pub(crate) fn new(
        location: &Location,
        objects: &Objects,
        mut labels: BTreeMap<String, bool>,
        samples: Option<usize>,
    ) -> anyhow::Result<Self> {
        let (found, given) = (objects.len(), labels.len());
        let (mut labelled, mut without) = (Vec::new(), Vec::new());
        for object in objects.iter() {
            let short = object.key.strip_prefix(&location.prefix).unwrap_or(object.key);
            match labels.remove(object.key).or_else(|| labels.remove(short)) {
                Some(label) => labelled.push((object, label)),
                None => without.push(object.key),
            }
        }
        list_keys("objects have no label and are left out", without.iter().copied())?;
        list_keys("labels have no object", labels.keys().map(String::as_str))?;
        anyhow::ensure!(
            !labelled.is_empty(),
            "no labels found: none of the {found} objects under {location} has one of the {given} labels; expected keys of the \
             bucket, with or without the prefix"
        );
        let parts = split(&labelled, samples);
        for (class, parts) in [("positive", &parts[1]), ("negative", &parts[0])] {
            anyhow::ensure!(
                parts.iter().all(|part| !part.is_empty()),
                "too few {class} samples: expected at least two, found {} positive of {}",
                labelled.iter().filter(|(_, label)| *label).count(),
                labelled.len()
            );
        }
        let of_part = |part: usize| {
            let mut indices = [&parts[0][part][..], &parts[1][part][..]].concat();
            indices.sort_unstable();
            indices
        };
        let (train, held_out) = (of_part(0), of_part(1));
        let used = || train.iter().chain(&held_out).map(|index| labelled[*index]);
        Ok(Self {
            objects: Objects::from_objects(objects.bucket(), used().map(|(object, _)| object)),
            labels: used().map(|(_, label)| label).collect(),
            train: train.len(),
        })
    }

    /// The labels of the training samples.
    pub(crate) fn train_labels(&self) -> &[bool] {
        &self.labels[..self.train]
    }

    /// The labels of the held-out samples.
    pub(crate) fn held_out_labels(&self) -> &[bool] {
        &self.labels[self.train..]
    }
}

/// For negatives and positives: the indices of the training samples and of the held-out ones. They depend only on the keys
/// of the class.
fn split(labelled: &[(Object<'_>, bool)], samples: Option<usize>) -> [[Vec<usize>; 2]; 2] {
    let positives = labelled.iter().filter(|(_, label)| *label).count();
    let samples = samples.unwrap_or(usize::MAX).min(labelled.len());
    // Rounds to the nearest.
    let take = (positives * samples + labelled.len() / 2) / labelled.len();
    [(false, samples - take), (true, take)].map(|(class, take)| {
        let order = |index: &usize| Digest::new(labelled[*index].0.key.as_bytes()).first_u64();
        let mut indices: Vec<usize> = (0..labelled.len())
            .filter(|index| labelled[*index].1 == class)
            .collect();
        indices.sort_by_cached_key(order);
        let held_out = |count: usize| count.div_ceil(HELD_OUT).min(count.saturating_sub(1));
        let mut train = indices.split_off(held_out(indices.len()));
        train.truncate(take - held_out(take));
        indices.truncate(held_out(take));
        [train, indices]
    })
}

fn list_keys<'a>(note: &str, keys: impl ExactSizeIterator<Item = &'a str>) -> io::Result<()> {
    let count = keys.len();
    if count == 0 {
        return Ok(());
    }
    let listed: Vec<_> = keys.take(MAX_LISTED_KEYS).collect();
    let more = if count > MAX_LISTED_KEYS { ", .." } else { "" };
    writeln!(io::stderr(), "{count} {note}: {}{more}", listed.join(", "))
}

#[cfg(test)]
mod tests;
