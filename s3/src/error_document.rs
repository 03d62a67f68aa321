//! The XML document of an S3 error.

use quick_xml::{Reader, events::Event};

use crate::xml::{UnknownEntity, text_of};

/// What an error document says. All parts are optional: proxies and stores answer with other documents too.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorDocument {
    /// The S3 error code, such as `NoSuchKey`.
    pub code: Option<String>,
    /// The message for people.
    pub message: Option<String>,
    /// The region that the store expects, in a refusal of a signature for another one.
    pub region: Option<String>,
}

impl ErrorDocument {
    /// Reads a document: the text of its first `Code`, `Message` and `Region` elements. A malformed or truncated document yields what was
    /// complete before the defect.
    pub fn parse(document: &[u8]) -> Self {
        let document = String::from_utf8_lossy(document);
        let mut reader = Reader::from_str(&document);
        // Proxies quote addresses without escapes.
        reader.config_mut().allow_dangling_amp = true;
        let mut found = Self::default();
        // The element that is being read, and its text so far.
        let mut element: Option<(String, String)> = None;
        loop {
            match reader.read_event() {
                Ok(Event::Start(start)) => {
                    let name = String::from_utf8_lossy(start.local_name().as_ref()).into_owned();
                    element = Some((name, String::new()));
                }
                Ok(Event::End(_)) => {
                    if let Some((name, content)) = element.take() {
                        found.set(&name, content);
                    }
                }
                Ok(Event::Eof) | Err(_) => return found,
                Ok(event) => {
                    let text = text_of(&event, UnknownEntity::Literal);
                    if let (Some((_, content)), Some(text)) = (&mut element, text) {
                        content.push_str(&text);
                    }
                }
            }
        }
    }

    fn set(&mut self, element: &str, content: String) {
        match element {
            "Code" => _ = self.code.get_or_insert(content),
            "Message" => _ = self.message.get_or_insert(content),
            "Region" => _ = self.region.get_or_insert(content),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(document: &str) -> (Option<String>, Option<String>) {
        let found = ErrorDocument::parse(document.as_bytes());
        (found.code, found.message)
    }

    fn both(code: &str, message: &str) -> (Option<String>, Option<String>) {
        (Some(code.to_owned()), Some(message.to_owned()))
    }

    #[test]
    fn elements_of_an_error_document_are_read() {
        let found = parse(
            "<?xml version=\"1.0\"?><Error><Code>NoSuchKey</Code><Message>a &lt;b&gt; &amp;amp; &#233;&#x21;</Message>\
             <Resource>/x</Resource></Error>",
        );
        assert_eq!(found, both("NoSuchKey", "a <b> &amp; é!"));
        let found = parse(
            "<Error xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><Code>A</Code>\n<Message><![CDATA[<m>]]></Message></Error>",
        );
        assert_eq!(found, both("A", "<m>"));
        assert_eq!(
            parse("<E><Code>A</Code><Code>B</Code><Message/></E>"),
            (Some("A".to_owned()), None)
        );
    }

    #[test]
    fn other_elements_are_passed_over() {
        let found =
            parse("<Error><Details><Key>k</Key></Details><Code>A</Code><Message>m</Message><New/></Error>");
        assert_eq!(found, both("A", "m"));
        // A code that contains elements is ignored.
        let found = parse("<Error><Code>A<b>c</b></Code><Message>m</Message></Error>");
        assert_eq!(found, (None, Some("m".to_owned())));
        assert_eq!(
            parse("<Error><Code>&#1;&#xD800;</Code></Error>").0,
            Some("\u{1}&#xD800;".to_owned())
        );
    }

    #[test]
    fn a_malformed_document_yields_what_was_complete() {
        assert_eq!(parse(""), (None, None));
        assert_eq!(parse("<Code>"), (None, None));
        assert_eq!(parse("502 Bad Gateway"), (None, None));
        assert_eq!(
            parse("<Error><Code>A</Code><Message>cut o"),
            (Some("A".to_owned()), None)
        );
        assert_eq!(
            parse("<Error><Code>A</Code></Wrong><Message>m</Message>"),
            (Some("A".to_owned()), None)
        );
        assert_eq!(
            parse("<Error><Code>A&nbsp;B & C</Code></Error>").0,
            Some("A&nbsp;B & C".to_owned())
        );
    }
}
