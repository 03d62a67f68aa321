//! Which samples are in which part.

#[cfg(test)]
mod scale;

use std::{collections::BTreeMap, ops::Range};

use pushdown::{part::Label, pipeline::Digest};

use super::{
    labels::Labels,
    manifest::{Manifest, ManifestPart},
};
use crate::{
    error::{Error, Result},
    objects::{Object, Objects},
    sample_name::SampleName,
};

/// Hex digits of a part's digest in its name: 128 bits.
const DIGEST_DIGITS: usize = 32;

/// The parts of a data set, each a stretch of `order`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Indices of objects.
    order: Vec<u32>,
    /// Where each part ends.
    ends: Vec<usize>,
    /// Number of the first objects in `order` that are in a part of an earlier run.
    known: usize,
    /// Parts of an earlier run that were made of objects that are gone: they stay as they are.
    kept: BTreeMap<usize, KeptPart>,
}

/// A part that stays as it is.
#[derive(Debug, PartialEq, Eq)]
struct KeptPart {
    part: ManifestPart,
    /// Names of the objects that are gone.
    vanished: Vec<String>,
}

impl Layout {
    /// Parts of this many samples, in the order of the names of the objects.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for an object that stands twice.
    pub(super) fn new(objects: &Objects, samples_per_part: usize) -> Result<Self> {
        let order = ordered(objects)?;
        Ok(Self::divided(order, samples_per_part))
    }

    /// The parts of a complete target, and behind them parts with the objects that it lacks.
    ///
    /// # Errors
    /// As [`new`](Self::new); for a manifest that cannot be read.
    pub(super) fn appended(objects: &Objects, samples_per_part: usize, manifest: &Manifest) -> Result<Self> {
        let order = ordered(objects)?;
        let mut is_known = vec![false; objects.len()];
        let mut known = Self::divided(Vec::new(), samples_per_part);
        for (number, part) in manifest.parts.iter().enumerate() {
            let mut vanished = Vec::new();
            for name in part.object_names()? {
                let place = order.binary_search_by(|index| name_of(objects, *index).as_str().cmp(&name));
                match place {
                    Ok(place) => {
                        known.order.push(order[place]);
                        is_known[order[place] as usize] = true;
                    }
                    Err(_) => vanished.push(name),
                }
            }
            known.ends.push(known.order.len());
            if !vanished.is_empty() {
                let part = part.clone();
                known.kept.insert(number, KeptPart { part, vanished });
            }
        }
        let new: Vec<u32> = order
            .into_iter()
            .filter(|index| !is_known[*index as usize])
            .collect();
        let Self { order, ends, .. } = Self::divided(new, samples_per_part);
        let begin = known.order.len();
        known.known = begin;
        known.order.extend(order);
        known.ends.extend(ends.iter().map(|end| begin + end));
        Ok(known)
    }

    fn divided(order: Vec<u32>, samples_per_part: usize) -> Self {
        let size = samples_per_part.max(1);
        let ends = (0..order.len())
            .step_by(size)
            .map(|start| (start + size).min(order.len()));
        Self {
            ends: ends.collect(),
            order,
            known: 0,
            kept: BTreeMap::new(),
        }
    }

    /// The objects that are in no part of an earlier run.
    pub(super) fn new_objects(&self) -> &[u32] {
        &self.order[self.known..]
    }

    /// A part that stays as it is, since objects that it was made of are gone.
    pub(super) fn kept_part(&self, number: usize) -> Option<&ManifestPart> {
        Some(&self.kept.get(&number)?.part)
    }

    /// Names of objects that are in a part of an earlier run, and are gone.
    pub(super) fn vanished_names(&self) -> Vec<String> {
        let vanished = self.kept.values().flat_map(|kept| &kept.vanished);
        vanished.map(|name| name.replace('\0', " member ")).collect()
    }

    /// Number of samples.
    pub(super) fn samples(&self) -> usize {
        self.order.len()
    }

    /// Number of parts.
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The objects of a part.
    ///
    /// # Panics
    /// If there is no such part.
    pub(super) fn part(&self, number: usize) -> &[u32] {
        &self.order[self.range(number)]
    }

    fn range(&self, number: usize) -> Range<usize> {
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[number]
    }

    /// Indices of this many objects, at equal distances.
    pub(super) fn spread(&self, count: usize) -> Vec<u32> {
        let all = self.order.len();
        let count = count.min(all);
        (0..count)
            .map(|number| self.order[number * all / count])
            .collect()
    }
}

/// Indices of all objects, in the order of their names.
fn ordered(objects: &Objects) -> Result<Vec<u32>> {
    let count = u32::try_from(objects.len()).map_err(|_| {
        Error::config(format!(
            "expected at most {} objects, found {}",
            u32::MAX,
            objects.len()
        ))
    })?;
    let mut order: Vec<u32> = (0..count).collect();
    let name = |index: u32| {
        let object = objects.object(index as usize);
        (object.key, object.member.map(|member| member.name))
    };
    if !order.is_sorted_by(|index, next| name(*index) < name(*next)) {
        order.sort_unstable_by(|index, other| name(*index).cmp(&name(*other)));
        let twice = order.windows(2).find(|pair| name(pair[0]) == name(pair[1]));
        if let Some(pair) = twice {
            return Err(Error::config(format!(
                "cannot materialize: expected each object once, found `{}` twice",
                name_of(objects, pair[0])
            )));
        }
    }
    Ok(order)
}

/// The name of an object: its key, followed by `\0` and the member for a sample of a shard.
pub(super) fn name_of(objects: &Objects, index: u32) -> String {
    let object = objects.object(index as usize);
    match object.member {
        Some(member) => format!("{}\0{}", object.key, member.name),
        None => object.key.to_owned(),
    }
}

/// The name of an object for people.
pub(super) fn shown_name(objects: &Objects, index: u32) -> String {
    SampleName::from(objects.object(index as usize)).to_string()
}

/// The name of a part in the target. It tells what the part contains, so that a part that is there need not be made.
pub(super) fn part_name<'a>(
    number: usize,
    recipe: &Digest,
    samples: impl Iterator<Item = (Object<'a>, &'a str)>,
    labels: Option<(&Labels, &[u32])>,
    extension: &str,
) -> String {
    let mut parts: Vec<Vec<u8>> = vec![recipe.as_bytes().to_vec()];
    for (object, etag) in samples {
        parts.push(object.key.as_bytes().to_vec());
        parts.push(etag.as_bytes().to_vec());
        if let Some(member) = object.member {
            let place = [member.range.offset(), member.range.size()].map(u64::to_le_bytes);
            parts.push([member.name.as_bytes(), &place.concat()].concat());
        }
    }
    if let Some((labels, indices)) = labels {
        parts.extend(indices.iter().map(|index| match labels.get(*index as usize) {
            Label::Int(number) => number.to_le_bytes().to_vec(),
            Label::Float(number) => number.to_bits().to_le_bytes().to_vec(),
            Label::Text(text) => text.into_bytes(),
        }));
    }
    let mut digest = Digest::from_parts(parts).to_string();
    digest.truncate(DIGEST_DIGITS);
    format!("part-{number:05}-{digest}.{extension}")
}

/// The number in the name of a part of this format; `None` for another name.
pub(super) fn number_in(name: &str, extension: &str) -> Option<usize> {
    let rest = name
        .strip_prefix("part-")?
        .strip_suffix(extension)?
        .strip_suffix('.')?;
    let (number, digest) = rest.split_once('-')?;
    let is_number = number.len() >= 5 && number.bytes().all(|byte| byte.is_ascii_digit());
    let is_digest = digest.len() == DIGEST_DIGITS && digest.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_number && is_digest {
        number.parse().ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use pushdown::part::pack;

    use super::{super::recipe::Recipe, *};

    fn manifest(parts: &[Vec<String>]) -> Manifest {
        let part = |names: &Vec<String>| ManifestPart {
            name: String::new(),
            samples: 0,
            bytes: 0,
            errors: Vec::new(),
            names: pack(names).unwrap(),
        };
        Manifest {
            recipe: Recipe {
                version: 1,
                source: String::new(),
                pipeline: String::new(),
                seed: None,
                epoch: 0,
                engine: String::new(),
                format: pushdown::part::PartFormat::Wds,
                label: None,
                columns: Vec::new(),
                samples_per_part: 1,
            },
            samples: 0,
            bytes: 0,
            errors: 0,
            parts: parts.iter().map(part).collect(),
        }
    }

    fn names(layout: &Layout, objects: &Objects) -> Vec<Vec<String>> {
        let part = |number| {
            layout
                .part(number)
                .iter()
                .map(|index| name_of(objects, *index))
                .collect()
        };
        (0..layout.len()).map(part).collect()
    }

    #[test]
    fn parts_are_stretches_in_the_order_of_keys() {
        let objects = Objects::from_keys("b", ["c", "a", "e", "b", "d"]);
        let layout = Layout::new(&objects, 2).unwrap();
        assert_eq!(
            names(&layout, &objects),
            [vec!["a", "b"], vec!["c", "d"], vec!["e"]]
        );
        assert_eq!(layout.spread(2), [1, 0]);
        assert_eq!(layout.spread(9).len(), 5);
        let twice = Objects::from_keys("b", ["c", "a", "c"]);
        let error = Layout::new(&twice, 2).unwrap_err().to_string();
        assert!(error.contains("found `c` twice"), "{error}");
    }

    #[test]
    fn a_name_of_a_part_has_its_number() {
        let objects = Objects::from_keys("b", ["a"]);
        let samples = || objects.iter().map(|object| (object, "\"1\""));
        let name = part_name(12, &Digest::new(b""), samples(), None, "tar");
        assert_eq!(number_in(&name, "tar"), Some(12));
        assert_eq!(
            number_in(
                &part_name(1_234_567, &Digest::new(b""), samples(), None, "tar"),
                "tar"
            ),
            Some(1_234_567)
        );
        for other in [
            "part-1-0.tar",
            "_recipe.json",
            "part-00001-.tar",
            "photo.tar",
            &name.replace("tar", "zip"),
        ] {
            assert_eq!(number_in(other, "tar"), None, "{other}");
        }
        let other_version = part_name(
            12,
            &Digest::new(b""),
            objects.iter().map(|object| (object, "\"2\"")),
            None,
            "tar",
        );
        assert_ne!(name, other_version);
    }

    proptest! {
        /// Parts that are there keep their objects, whatever came and went; new objects are in new parts.
        #[test]
        fn appending_keeps_the_parts_that_are_there(
            before in prop::collection::btree_set("[a-d]{1,3}", 1..30),
            after in prop::collection::btree_set("[a-d]{1,3}", 1..30),
            size in 1_usize..6,
        ) {
            let first = Objects::from_keys("b", &before);
            let parts = names(&Layout::new(&first, size).unwrap(), &first);
            let second = Objects::from_keys("b", &after);
            let layout = Layout::appended(&second, size, &manifest(&parts)).unwrap();
            let appended = names(&layout, &second);
            for (part, kept) in parts.iter().zip(&appended) {
                let expected: Vec<_> = part.iter().filter(|name| after.contains(*name)).cloned().collect();
                prop_assert_eq!(kept, &expected);
            }
            let all: Vec<_> = appended.concat();
            let mut sorted = all.clone();
            sorted.sort();
            prop_assert_eq!(sorted, after.iter().cloned().collect::<Vec<_>>());
            let vanished: Vec<_> = before.difference(&after).cloned().collect();
            prop_assert_eq!(layout.vanished_names(), vanished);
            for (number, part) in parts.iter().enumerate() {
                let has_vanished = part.iter().any(|name| !after.contains(name));
                prop_assert_eq!(layout.kept_part(number).is_some(), has_vanished);
            }
            let new: Vec<_> = layout.new_objects().iter().map(|index| name_of(&second, *index)).collect();
            prop_assert_eq!(new, after.difference(&before).cloned().collect::<Vec<_>>());
        }
    }
}
