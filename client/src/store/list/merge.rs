//! Lists in the order of keys.

use std::sync::Arc;

use crate::objects::{Objects, ObjectsBuilder};

/// The objects in the order of their keys.
pub(in crate::store) fn sorted(objects: Objects) -> Objects {
    if objects.iter().is_sorted_by_key(|object| object.key) {
        return objects;
    }
    let mut order: Vec<usize> = (0..objects.len()).collect();
    order.sort_by_key(|index| objects.key(*index));
    objects.select(order)
}

/// Merges the objects in a folder with those of its subfolders, each in the order of keys. The keys of a subfolder begin with its prefix,
/// and no others do, so they are consecutive.
pub(super) fn merged(bucket: &Arc<str>, direct: &Objects, subfolders: &[(String, Objects)]) -> Objects {
    let mut merged = ObjectsBuilder::default();
    let mut direct = direct.iter().peekable();
    for (prefix, objects) in subfolders {
        while let Some(object) = direct.next_if(|object| object.key < prefix.as_str()) {
            merged.push(object);
        }
        merged.extend(objects.iter());
    }
    merged.extend(direct);
    merged.finish(Arc::clone(bucket))
}

/// A key that is in a sorted list twice.
pub(in crate::store) fn duplicate(objects: &Objects) -> Option<&str> {
    let indices = 1..objects.len();
    let mut keys = indices.map(|index| (objects.key(index - 1), objects.key(index)));
    keys.find(|(key, next)| key == next).map(|(key, _)| key)
}
