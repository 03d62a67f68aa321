//! Nodes of the syntax tree that are still to be checked.

use super::expansion::Place;

/// A list of nodes, each with its place.
pub(super) struct Pending<'a, T> {
    nodes: Vec<(Place, &'a T)>,
    /// Of the nodes that are added next.
    place: Place,
}

impl<T> Default for Pending<'_, T> {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            place: Place::default(),
        }
    }
}

impl<'a, T> Pending<'a, T> {
    pub(super) const fn enter(&mut self, place: Place) {
        self.place = place;
    }

    pub(super) fn push(&mut self, node: &'a T) {
        self.nodes.push((self.place, node));
    }

    pub(super) fn extend(&mut self, nodes: impl IntoIterator<Item = &'a T>) {
        let place = self.place;
        self.nodes.extend(nodes.into_iter().map(|node| (place, node)));
    }

    pub(super) fn pop(&mut self) -> Option<(Place, &'a T)> {
        self.nodes.pop()
    }
}
