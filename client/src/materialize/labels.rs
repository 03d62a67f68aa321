//! The labels of all samples.

use std::collections::BTreeMap;

use pushdown::part::{Label, LabelType};

use crate::{
    error::{Error, Result},
    objects::Objects,
};

/// The labels of all objects of a data set, in its order.
#[derive(Debug, Clone, PartialEq)]
pub struct Labels {
    label_type: LabelType,
    values: LabelValues,
}

/// Values of one type.
#[derive(Debug, Clone, PartialEq)]
pub enum LabelValues {
    /// Numbers of classes, and other whole numbers.
    Int(Vec<i64>),
    /// Other numbers.
    Float(Vec<f64>),
    /// Texts.
    Text(Vec<String>),
}

impl Labels {
    /// Labels of this type.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) if the values have another type, or name no class.
    pub fn new(label_type: LabelType, values: LabelValues) -> Result<Self> {
        let labels = Self { label_type, values };
        for index in 0..labels.len() {
            labels
                .label_type
                .check_label(&format!("{index}"), &labels.get(index))
                .map_err(|error| Error::config(error.to_string()).with_source(error))?;
        }
        Ok(labels)
    }

    /// The class of each object: the first folder of its key after `prefix`, numbered in the order of their names.
    ///
    /// # Errors
    /// [`ErrorKind::Config`](crate::ErrorKind) for an object that is in no folder there.
    pub fn of_folders(objects: &Objects, prefix: &str) -> Result<Self> {
        let root = if prefix.is_empty() || prefix.ends_with('/') {
            prefix.to_owned()
        } else {
            format!("{prefix}/")
        };
        let folder = |index: usize| {
            let object = objects.object(index);
            let path = object.member.map_or(object.key, |member| member.name);
            let folder = path.strip_prefix(&root).and_then(|rest| rest.split_once('/'));
            folder.map(|(folder, _)| folder).ok_or_else(|| {
                Error::config(format!(
                    "cannot label by folders: expected all objects in folders of classes, `{root}<class>/`, found `{path}`"
                ))
            })
        };
        let mut numbers: BTreeMap<&str, i64> = BTreeMap::new();
        for index in 0..objects.len() {
            numbers.insert(folder(index)?, 0);
        }
        for (number, class) in (0..).zip(numbers.values_mut()) {
            *class = number;
        }
        let values =
            (0..objects.len()).map(|index| Ok(numbers.get(folder(index)?).copied().unwrap_or_default()));
        let values = values.collect::<Result<_>>()?;
        let names = numbers.into_keys().map(str::to_owned).collect();
        Ok(Self {
            label_type: LabelType::Class { names },
            values: LabelValues::Int(values),
        })
    }

    /// The type of all labels.
    pub const fn label_type(&self) -> &LabelType {
        &self.label_type
    }

    pub(super) fn len(&self) -> usize {
        match &self.values {
            LabelValues::Int(values) => values.len(),
            LabelValues::Float(values) => values.len(),
            LabelValues::Text(values) => values.len(),
        }
    }

    /// The label of an object.
    ///
    /// # Panics
    /// If there is no object with this index.
    pub(super) fn get(&self, index: usize) -> Label {
        match &self.values {
            LabelValues::Int(values) => Label::Int(values[index]),
            LabelValues::Float(values) => Label::Float(values[index]),
            LabelValues::Text(values) => Label::Text(values[index].clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_classes_in_the_order_of_their_names() {
        let objects = Objects::from_keys("b", ["p/dog/1", "p/cat/x/2", "p/dog/3"]);
        for prefix in ["p/", "p"] {
            let labels = Labels::of_folders(&objects, prefix).unwrap();
            let names = vec!["cat".to_owned(), "dog".to_owned()];
            assert_eq!(labels.label_type(), &LabelType::Class { names });
            let numbers: Vec<_> = (0..3).map(|index| labels.get(index)).collect();
            assert_eq!(numbers, [Label::Int(1), Label::Int(0), Label::Int(1)]);
        }
        let error = Labels::of_folders(&objects, "p/dog/").unwrap_err().to_string();
        assert!(
            error.contains("found `p/dog/1`") || error.contains("found `p/cat/x/2`"),
            "{error}"
        );
    }
}
