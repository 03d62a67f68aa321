//! The list of objects in the body of `DeleteObjects`.

use pushdown_s3::xml::{Elements, Malformed, NAMESPACE, TextForm, push_element};

/// The most objects of a list.
const MAX_OBJECTS: usize = 1000;

/// Elements with a condition under which an object is deleted.
const CONDITIONS: [&str; 3] = ["ETag", "LastModifiedTime", "Size"];

/// A `Delete` document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct DeleteList {
    /// Whether the answer is to name errors only.
    pub(super) is_quiet: bool,
    /// At least one object.
    pub(super) objects: Vec<ListedObject>,
}

/// An object, or a version of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListedObject {
    pub(super) key: String,
    pub(super) version_id: Option<String>,
    /// Names and contents of elements.
    conditions: Vec<(&'static str, String)>,
}

impl DeleteList {
    /// Reads a document. Unknown and repeated elements are refused: stores disagree about their meaning.
    pub(super) fn parse(document: &str) -> Result<Self, Malformed> {
        let mut elements = Elements::new(document);
        if elements.child()?.as_deref() != Some("Delete") {
            return Err(Malformed);
        }
        let (mut quiet, mut objects) = (None, Vec::new());
        while let Some(name) = elements.child()? {
            match name.as_str() {
                "Object" if objects.len() < MAX_OBJECTS => objects.push(ListedObject::read(&mut elements)?),
                "Quiet" if quiet.is_none() => quiet = Some(parse_bool(&elements.content()?)?),
                _ => return Err(Malformed),
            }
        }
        if objects.is_empty() || elements.child()?.is_some() {
            return Err(Malformed);
        }
        Ok(Self {
            is_quiet: quiet.unwrap_or_default(),
            objects,
        })
    }

    /// Writes the document.
    pub(super) fn to_xml(&self) -> String {
        let mut xml = format!("<Delete xmlns=\"{NAMESPACE}\">");
        for object in &self.objects {
            xml.push_str("<Object>");
            object.push_name(&mut xml);
            for (name, content) in &object.conditions {
                push_element(&mut xml, name, content, TextForm::Exact);
            }
            xml.push_str("</Object>");
        }
        if self.is_quiet {
            push_element(&mut xml, "Quiet", "true", TextForm::Exact);
        }
        xml.push_str("</Delete>");
        xml
    }
}

impl ListedObject {
    /// Reads the content of an `Object` element.
    fn read(elements: &mut Elements<'_>) -> Result<Self, Malformed> {
        let (mut key, mut version_id) = (None, None);
        let mut conditions: Vec<(&'static str, String)> = Vec::new();
        while let Some(name) = elements.child()? {
            let content = elements.content()?;
            match name.as_str() {
                "Key" if key.is_none() => key = Some(content),
                "VersionId" if version_id.is_none() => version_id = Some(content),
                other => {
                    let known = CONDITIONS.into_iter().find(|known| *known == other);
                    let known = known.ok_or(Malformed)?;
                    if conditions.iter().any(|(found, _)| *found == known) {
                        return Err(Malformed);
                    }
                    conditions.push((known, content));
                }
            }
        }
        Ok(Self {
            key: key.filter(|key| !key.is_empty()).ok_or(Malformed)?,
            version_id: version_id.filter(|version_id| !version_id.is_empty()),
            conditions,
        })
    }

    /// Appends the elements that name the object.
    pub(super) fn push_name(&self, xml: &mut String) {
        push_element(xml, "Key", &self.key, TextForm::Exact);
        if let Some(version_id) = &self.version_id {
            push_element(xml, "VersionId", version_id, TextForm::Exact);
        }
    }
}

fn parse_bool(text: &str) -> Result<bool, Malformed> {
    match text.trim_ascii() {
        "true" | "1" => Ok(true),
        "" | "false" | "0" => Ok(false),
        _ => Err(Malformed),
    }
}

#[cfg(test)]
mod tests {
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
}
