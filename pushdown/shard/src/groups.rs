//! Groups the members of a shard into samples, as `WebDataset` does: those whose names [split](crate::split_name) alike are one group.

use crate::names::NameSet;

/// Extensions of the values if none is named, in the order of preference.
const IMAGES: [&str; 4] = ["jpg", "jpeg", "png", "webp"];

/// Finds the column of a member by its extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnMatcher {
    /// Extensions of the value, in the order of preference.
    values: Vec<String>,
    /// Extensions of the further columns.
    further: Vec<String>,
}

/// The column of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Column {
    /// The value, with the rank of its extension: 0 is the best.
    Value(usize),
    /// A further column, by its number.
    Further(usize),
}

/// The members of a group that are columns of its sample, each as a `T`. A group without a value is no sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group<T> {
    /// The value, after the rank of its extension.
    value: Option<(usize, T)>,
    further: Vec<Option<T>>,
}

/// Groups the members of a shard in their order. A group ends with the first member of another.
#[derive(Debug)]
pub struct Grouping<T> {
    further: usize,
    current: Option<(String, Group<T>)>,
    /// The names of all groups so far.
    seen: NameSet,
}

/// The group of the next member in the order of a shard.
#[derive(Debug, PartialEq, Eq)]
pub enum Entered<T> {
    /// That of the member before it.
    Same,
    /// A new one, with which another one may end.
    New(Option<Group<T>>),
    /// One that has ended: its members do not follow each other. The group of the member before it goes on.
    Ended,
}

impl ColumnMatcher {
    /// Values have the extension `value`, or else the first one of `jpg`, `jpeg`, `png` and `webp` that a group has and that is no further column.
    /// `None` if that leaves no extension. Extensions are compared in lower case.
    pub fn new(value: Option<&str>, further: &[String]) -> Option<Self> {
        let further: Vec<String> = further.iter().map(|name| name.to_lowercase()).collect();
        let mut values: Vec<String> = match value {
            Some(value) => vec![value.to_lowercase()],
            None => IMAGES.map(str::to_owned).into(),
        };
        values.retain(|value| !further.contains(value));
        (!values.is_empty()).then_some(Self { values, further })
    }

    /// Extensions of the value, in the order of preference.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    /// Extensions of the further columns, in lower case.
    pub fn further(&self) -> &[String] {
        &self.further
    }

    /// The column of members with this extension, if it is selected.
    pub fn column(&self, extension: &str) -> Option<Column> {
        let place = |extensions: &[String]| extensions.iter().position(|other| other == extension);
        let value = place(&self.values).map(Column::Value);
        value.or_else(|| place(&self.further).map(Column::Further))
    }
}

impl<T> Group<T> {
    /// A group without members.
    pub fn new(columns: &ColumnMatcher) -> Self {
        Self::with_further(columns.further.len())
    }

    fn with_further(further: usize) -> Self {
        Self {
            value: None,
            further: (0..further).map(|_| None).collect(),
        }
    }

    /// Adds a member. `false` if the group has a better value.
    ///
    /// # Errors
    /// The other member, if the group has one for the column.
    pub fn add(&mut self, column: Column, member: T) -> Result<bool, &T> {
        match column {
            Column::Value(rank) => {
                if let Some((best, _)) = &self.value
                    && *best < rank
                {
                    return Ok(false);
                }
                match self.value.replace((rank, member)) {
                    Some((other, first)) if other == rank => Err(&self.value.insert((rank, first)).1),
                    _ => Ok(true),
                }
            }
            Column::Further(number) => {
                let mut is_new = false;
                let first = self.further[number].get_or_insert_with(|| {
                    is_new = true;
                    member
                });
                if is_new { Ok(true) } else { Err(first) }
            }
        }
    }

    /// The member that was added last for a column.
    pub fn member_mut(&mut self, column: Column) -> Option<&mut T> {
        match column {
            Column::Value(_) => self.value.as_mut().map(|(_, member)| member),
            Column::Further(number) => self.further.get_mut(number)?.as_mut(),
        }
    }

    /// The value, and the further columns.
    pub fn into_columns(self) -> (Option<T>, Vec<Option<T>>) {
        (self.value.map(|(_, member)| member), self.further)
    }
}

impl<T> Grouping<T> {
    /// Groups the members of one shard.
    pub fn new(columns: &ColumnMatcher) -> Self {
        Self {
            further: columns.further.len(),
            current: None,
            seen: NameSet::default(),
        }
    }

    /// Goes to the group of the next member, by its name.
    pub fn enter(&mut self, group: &str) -> Entered<T> {
        match &self.current {
            Some((name, _)) if name == group => Entered::Same,
            _ if !self.seen.insert(group) => Entered::Ended,
            _ => {
                let began = (group.to_owned(), Group::with_further(self.further));
                Entered::New(self.current.replace(began).map(|(_, ended)| ended))
            }
        }
    }

    /// The group of the last member.
    pub fn current(&mut self) -> Option<&mut Group<T>> {
        self.current.as_mut().map(|(_, group)| group)
    }

    /// Ends the shard, and returns its last group.
    pub fn end(&mut self) -> Option<Group<T>> {
        self.current.take().map(|(_, group)| group)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matcher(value: Option<&str>, further: &[&str]) -> Option<ColumnMatcher> {
        let further: Vec<String> = further.iter().map(|name| (*name).to_owned()).collect();
        ColumnMatcher::new(value, &further)
    }

    #[test]
    fn extensions_are_those_of_the_value_or_of_further_columns() {
        let columns = matcher(None, &["PNG", "cls"]).unwrap();
        assert_eq!(columns.values(), ["jpg", "jpeg", "webp"]);
        assert_eq!(columns.further(), ["png", "cls"]);
        assert_eq!(columns.column("webp"), Some(Column::Value(2)));
        assert_eq!(columns.column("png"), Some(Column::Further(0)));
        assert_eq!(columns.column("txt"), None);
        let columns = matcher(Some("NPY"), &[]).unwrap();
        assert_eq!(
            (columns.column("npy"), columns.column("jpg")),
            (Some(Column::Value(0)), None)
        );
        assert_eq!(matcher(Some("cls"), &["cls"]), None);
    }

    #[test]
    fn a_group_has_its_best_value_and_one_member_for_a_column() {
        let columns = matcher(None, &["cls", "json"]).unwrap();
        let mut group = Group::new(&columns);
        assert_eq!(group.add(Column::Value(2), "a.png"), Ok(true));
        assert_eq!(group.add(Column::Value(3), "a.webp"), Ok(false));
        assert_eq!(group.add(Column::Value(2), "a.PNG"), Err(&"a.png"));
        assert_eq!(group.add(Column::Value(0), "a.jpg"), Ok(true));
        assert_eq!(group.add(Column::Further(1), "a.json"), Ok(true));
        assert_eq!(group.add(Column::Further(1), "a.JSON"), Err(&"a.json"));
        *group.member_mut(Column::Further(1)).unwrap() = "content";
        assert_eq!(group.member_mut(Column::Further(0)), None);
        assert_eq!(group.into_columns(), (Some("a.jpg"), vec![None, Some("content")]));
    }

    #[test]
    fn groups_end_with_the_first_member_of_another() {
        let columns = matcher(None, &[]).unwrap();
        let mut grouping = Grouping::new(&columns);
        assert_eq!(grouping.enter("a"), Entered::New(None));
        assert_eq!(grouping.current().unwrap().add(Column::Value(0), 1), Ok(true));
        assert_eq!(grouping.enter("a"), Entered::Same);
        let Entered::New(Some(ended)) = grouping.enter("b") else {
            panic!("the first group has not ended");
        };
        assert_eq!(ended.into_columns(), (Some(1), vec![]));
        assert_eq!(grouping.enter("a"), Entered::Ended);
        assert_eq!(grouping.enter("b"), Entered::Same);
        assert_eq!(grouping.end().unwrap().into_columns(), (None, vec![]));
        assert_eq!(grouping.end(), None);
    }
}
