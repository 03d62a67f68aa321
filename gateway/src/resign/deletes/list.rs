//! The list of objects in the body of `DeleteObjects`.

use std::{collections::HashSet, mem};

use pushdown_s3::xml::{self, Malformed, NAMESPACE, TextForm, push_element};
use serde::{Deserialize, Deserializer, de::Error as _};

const ROOT: &str = "Delete";

/// The most objects of a list.
const MAX_OBJECTS: usize = 1000;

/// A `Delete` document.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteList {
    /// Whether the answer is to name errors only.
    #[serde(rename = "Quiet", default, deserialize_with = "boolean")]
    pub(super) is_quiet: bool,
    /// At least one object.
    #[serde(rename = "Object")]
    pub(super) objects: Vec<ListedObject>,
}

/// An object, or a version of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "PascalCase")]
pub(super) struct ListedObject {
    pub(super) key: String,
    pub(super) version_id: Option<String>,
    /// In the order of the document, each kind at most once.
    #[serde(rename = "$value", default)]
    conditions: Vec<Condition>,
}

/// An element with a condition under which an object is deleted.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
enum Condition {
    ETag(String),
    LastModifiedTime(String),
    Size(String),
}

impl DeleteList {
    /// Reads a document. Unknown and repeated elements are refused: stores disagree about their meaning.
    pub(super) fn parse(document: &str) -> Result<Self, Malformed> {
        let mut list: Self = xml::read(document, ROOT)?;
        for object in &mut list.objects {
            // An empty element is no version.
            object.version_id.take_if(|version_id| version_id.is_empty());
        }
        let is_valid = list.objects.len() <= MAX_OBJECTS && list.objects.iter().all(ListedObject::is_valid);
        if is_valid { Ok(list) } else { Err(Malformed) }
    }

    /// Writes the document.
    pub(super) fn to_xml(&self) -> String {
        let mut xml = format!("<{ROOT} xmlns=\"{NAMESPACE}\">");
        for object in &self.objects {
            xml.push_str("<Object>");
            object.push_name(&mut xml);
            for condition in &object.conditions {
                condition.push(&mut xml);
            }
            xml.push_str("</Object>");
        }
        if self.is_quiet {
            push_element(&mut xml, "Quiet", "true", TextForm::Exact);
        }
        xml.extend(["</", ROOT, ">"]);
        xml
    }
}

impl ListedObject {
    fn is_valid(&self) -> bool {
        let kinds: HashSet<_> = self.conditions.iter().map(mem::discriminant).collect();
        !self.key.is_empty() && kinds.len() == self.conditions.len()
    }

    /// Appends the elements that name the object.
    pub(super) fn push_name(&self, xml: &mut String) {
        push_element(xml, "Key", &self.key, TextForm::Exact);
        if let Some(version_id) = &self.version_id {
            push_element(xml, "VersionId", version_id, TextForm::Exact);
        }
    }
}

impl Condition {
    /// Appends the element.
    fn push(&self, xml: &mut String) {
        let (name, content) = match self {
            Self::ETag(content) => ("ETag", content),
            Self::LastModifiedTime(content) => ("LastModifiedTime", content),
            Self::Size(content) => ("Size", content),
        };
        push_element(xml, name, content, TextForm::Exact);
    }
}

/// Reads a boolean, which may be empty.
fn boolean<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.trim_ascii() {
        "true" | "1" => Ok(true),
        "" | "false" | "0" => Ok(false),
        _ => Err(D::Error::custom("expected true, 1, false or 0")),
    }
}

#[cfg(test)]
mod tests {
    use proptest::{prelude::*, sample::subsequence};

    use super::*;

    fn object(key: &str, version_id: Option<&str>) -> ListedObject {
        ListedObject {
            key: key.to_owned(),
            version_id: version_id.map(str::to_owned),
            conditions: Vec::new(),
        }
    }

    #[test]
    fn a_list_is_read_and_written_in_one_form() {
        let list = DeleteList::parse(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<d:Delete xmlns:d=\"http://s3.amazonaws.com/doc/2006-03-01/\">\n\
             <Quiet>true</Quiet> <Object><VersionId>v&amp;1</VersionId><Key>a<![CDATA[<b>]]>&#13;</Key></Object>\
             <Object><Key> c </Key><VersionId/><Size>5</Size><ETag>\"e\"</ETag></Object></d:Delete>",
        )
        .unwrap();
        assert!(list.is_quiet);
        assert_eq!(list.objects[0], object("a<b>\r", Some("v&1")));
        let expected = "<Delete xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
            <Object><Key>a&lt;b&gt;&#13;</Key><VersionId>v&amp;1</VersionId></Object>\
            <Object><Key> c </Key><Size>5</Size><ETag>\"e\"</ETag></Object><Quiet>true</Quiet></Delete>";
        assert_eq!(list.to_xml(), expected);
        assert_eq!(DeleteList::parse(expected).unwrap(), list);
    }

    #[test]
    fn a_list_has_up_to_1000_objects() {
        let list = |count: usize| {
            let objects = "<Object><Key>a</Key></Object>".repeat(count);
            DeleteList::parse(&format!("<Delete><Quiet>false</Quiet>{objects}</Delete>"))
        };
        assert_eq!(list(1000).unwrap().objects, vec![object("a", None); 1000]);
        assert!(!list(1).unwrap().is_quiet);
        assert_eq!(list(0), Err(Malformed));
        assert_eq!(list(1001), Err(Malformed));
    }

    #[test]
    fn ambiguous_lists_are_refused() {
        let a = "<Object><Key>a</Key></Object>";
        for document in [
            String::new(),
            a.to_owned(),
            format!("<Delete>{a}"),
            format!("<Delete>{a}</Delete><Delete>{a}</Delete>"),
            format!("<Delete>{a}text</Delete>"),
            format!("<Delete>{a}<Other/></Delete>"),
            format!("<Delete>{a}<Quiet>perhaps</Quiet></Delete>"),
            format!("<Delete>{a}<Quiet>true</Quiet><Quiet>false</Quiet></Delete>"),
            format!("<Deletes>{a}</Deletes>"),
            format!("<!DOCTYPE Delete [<!ENTITY b \"c\">]><Delete>{a}</Delete>"),
            "<Delete><Object/></Delete>".to_owned(),
            "<Delete><Object><Key/></Object></Delete>".to_owned(),
            "<Delete><Object><VersionId>1</VersionId></Object></Delete>".to_owned(),
            "<Delete><Object><Key>a</Key><Key>b</Key></Object></Delete>".to_owned(),
            "<Delete><Object><Key>a<Key>b</Key></Key></Object></Delete>".to_owned(),
            "<Delete><Object><Key>a</Key><key>b</key></Object></Delete>".to_owned(),
            "<Delete><Object><Key>a</Key><Size>1</Size><Size>2</Size></Object></Delete>".to_owned(),
            "<Delete><Object><Key>a&b;</Key></Object></Delete>".to_owned(),
        ] {
            assert_eq!(DeleteList::parse(&document), Err(Malformed), "{document}");
        }
    }
    #[test]
    fn elements_of_a_list_have_no_order() {
        let document = "<Delete><Object><ETag>e</ETag><Key> \t</Key><Size>5</Size><VersionId>1</VersionId></Object><Quiet> 1 </Quiet>\
             <x:Object><Key>\r\n&#xd;</Key></x:Object></Delete>";
        let list = DeleteList::parse(document).unwrap();
        assert!(list.is_quiet);
        let conditional = ListedObject {
            conditions: vec![Condition::ETag("e".to_owned()), Condition::Size("5".to_owned())],
            ..object(" \t", Some("1"))
        };
        assert_eq!(list.objects, [conditional, object("\n\r", None)]);
    }

    #[test]
    fn attributes_do_not_remove_a_version() {
        let document = "<Delete xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\"><Object i:nil=\"true\"><Key>a</Key>\
             <VersionId i:nil=\"true\">1</VersionId></Object></Delete>";
        assert_eq!(
            DeleteList::parse(document).unwrap().objects,
            [object("a", Some("1"))]
        );
    }

    #[test]
    fn one_more_element_is_refused_everywhere() {
        let elements = [
            "<Key>a</Key>",
            "<VersionId>1</VersionId>",
            "<ETag>e</ETag>",
            "<LastModifiedTime>t</LastModifiedTime>",
            "<Size>5</Size>",
        ];
        let parse = |elements: &[&str]| {
            let object = elements.concat();
            DeleteList::parse(&format!("<Delete><Object>{object}</Object><Quiet/></Delete>"))
        };
        assert!(parse(&elements).is_ok());
        let others = [
            "text",
            "<Other/>",
            "<Quiet/>",
            "<Object><Key>a</Key></Object>",
            "<?other?>",
        ];
        for more in elements.into_iter().chain(others) {
            for position in 0..=elements.len() {
                let mut elements = elements.to_vec();
                elements.insert(position, more);
                assert_eq!(parse(&elements), Err(Malformed), "{elements:?}");
            }
        }
    }

    /// Texts of characters of XML 1.0, often of those that are escaped.
    fn text() -> impl Strategy<Value = String> {
        "([\t\n\r &<>\"'\\]]|[ -\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]){1,12}"
    }

    fn conditions() -> impl Strategy<Value = Vec<Condition>> {
        [text(), text(), text()].prop_flat_map(|[tag, time, size]| {
            let all = vec![
                Condition::ETag(tag),
                Condition::LastModifiedTime(time),
                Condition::Size(size),
            ];
            subsequence(all, 0..=3).prop_shuffle()
        })
    }

    fn objects() -> impl Strategy<Value = Vec<ListedObject>> {
        let object = (text(), proptest::option::of(text()), conditions());
        let object = object.prop_map(|(key, version_id, conditions)| ListedObject {
            key,
            version_id,
            conditions,
        });
        proptest::collection::vec(object, 1..5)
    }

    proptest! {
        #[test]
        fn a_list_is_read_as_it_was_written(objects in objects(), is_quiet: bool) {
            let list = DeleteList { is_quiet, objects };
            prop_assert_eq!(DeleteList::parse(&list.to_xml()), Ok(list));
        }
    }
}
