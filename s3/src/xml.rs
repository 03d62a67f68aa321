//! Strict reading and canonical writing of small S3 documents.
//!
//! The gateway writes anew what it has decided on, so that the store cannot read the document in another way. Documents are read by `serde`, after
//! one pass over their events has refused or removed what `serde` takes in another way. They are not written by `serde`, which leaves carriage
//! returns as they are.

use std::num::NonZeroUsize;

use quick_xml::{
    Reader, de::Deserializer, escape::resolve_predefined_entity, events::Event, name::LocalName,
};
use serde::de::DeserializeOwned;

/// The namespace of S3's documents.
pub const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// The most tags and texts between two elements of a list, which wait while the list is read.
const MAX_WAITING_EVENTS: Option<NonZeroUsize> = NonZeroUsize::new(64);

/// The document is not well-formed, or has other elements than expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// Reads a document. `T` must refuse unknown elements (`deny_unknown_fields`); `serde` refuses doubled ones. Prefixes, attributes and
/// comments are ignored.
///
/// # Errors
/// For another root, whatever `T` refuses, text between elements, unknown entities, characters that XML 1.0 cannot express, and a
/// `DOCTYPE`.
pub fn read<T: DeserializeOwned>(document: &str, root: &str) -> Result<T, Malformed> {
    let document = elements_and_text(document, root)?;
    let mut deserializer = Deserializer::from_str(&document);
    deserializer.event_buffer_size(MAX_WAITING_EVENTS);
    T::deserialize(&mut deserializer).map_err(|_| Malformed)
}

/// The elements of a document without prefixes, and their text, in one form. By itself `serde` accepts a second root, text after the root, a
/// `DOCTYPE` and characters that XML cannot express. It takes attributes for fields, has no value for an element with `xsi:nil`, and
/// reads other line breaks after a declaration of XML 1.1.
fn elements_and_text(document: &str, root: &str) -> Result<String, Malformed> {
    let mut reader = Reader::from_str(document);
    reader.config_mut().expand_empty_elements = true;
    let mut xml = String::with_capacity(document.len());
    // The number of open elements.
    let mut depth = 0_usize;
    loop {
        match reader.read_event().map_err(|_| Malformed)? {
            Event::Start(element) => {
                let name = text_of_name(element.local_name())?;
                if depth == 0 && (name != root || !xml.is_empty()) {
                    return Err(Malformed);
                }
                depth += 1;
                xml.extend(["<", name, ">"]);
            }
            Event::End(element) => {
                depth = depth.saturating_sub(1);
                xml.extend(["</", text_of_name(element.local_name())?, ">"]);
            }
            Event::Eof => return Ok(xml),
            Event::Comment(_) => {}
            Event::Decl(_) if xml.is_empty() => {}
            event => {
                let text = text_of(&event, UnknownEntity::Refused).ok_or(Malformed)?;
                if depth > 0 && text.chars().all(is_xml_character) {
                    push_text(&mut xml, &text, TextForm::Exact);
                } else if !text.bytes().all(is_white_space) {
                    return Err(Malformed);
                }
            }
        }
    }
}

fn text_of_name(name: LocalName<'_>) -> Result<&str, Malformed> {
    let name = std::str::from_utf8(name.into_inner()).map_err(|_| Malformed)?;
    // Its prefix was removed: what follows another colon must not become the name.
    (!name.contains(':')).then_some(name).ok_or(Malformed)
}

/// What a reference to an entity that XML does not define, or to no character, means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnknownEntity {
    /// The text is malformed.
    Refused,
    /// It is text, as it is written: proxies quote addresses without escapes.
    Literal,
}

/// The text that an event adds to its element. `None` for other events, and for malformed text.
pub fn text_of(event: &Event<'_>, unknown: UnknownEntity) -> Option<String> {
    match event {
        Event::Text(text) => Some(text.xml10_content().ok()?.into_owned()),
        Event::CData(data) => Some(data.xml10_content().ok()?.into_owned()),
        Event::GeneralRef(reference) => {
            let is_literal = unknown == UnknownEntity::Literal;
            match reference.resolve_char_ref() {
                Ok(Some(character)) => return Some(character.to_string()),
                Err(_) if !is_literal => return None,
                Ok(None) | Err(_) => {}
            }
            let name = reference.xml10_content().ok()?;
            let text = resolve_predefined_entity(&name).map(str::to_owned);
            text.or_else(|| is_literal.then(|| format!("&{name};")))
        }
        _ => None,
    }
}

/// How text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextForm {
    /// So that readers find the same text.
    Exact,
    /// For people: quotes are escaped, too, and control characters, most of which XML 1.0 cannot express, become `?`.
    Printable,
}

/// Appends an element with this text.
pub fn push_element(xml: &mut String, name: &str, text: &str, form: TextForm) {
    xml.extend(["<", name, ">"]);
    push_text(xml, text, form);
    xml.extend(["</", name, ">"]);
}

fn push_text(xml: &mut String, text: &str, form: TextForm) {
    for character in text.chars() {
        match (character, form) {
            ('&', _) => xml.push_str("&amp;"),
            ('<', _) => xml.push_str("&lt;"),
            ('>', _) => xml.push_str("&gt;"),
            // Readers would turn it into a line feed.
            ('\r', TextForm::Exact) => xml.push_str("&#13;"),
            ('"', TextForm::Printable) => xml.push_str("&quot;"),
            ('\'', TextForm::Printable) => xml.push_str("&apos;"),
            ('\t' | '\n', TextForm::Printable) => xml.push(character),
            (control, TextForm::Printable) if control.is_control() => xml.push('?'),
            _ => xml.push(character),
        }
    }
}

const fn is_white_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether XML 1.0 can express a character.
const fn is_xml_character(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
}

#[cfg(test)]
mod tests {
    use quick_xml::de::from_str;
    use serde::Deserialize;

    use super::*;

    /// A document with lists that may be mixed.
    #[derive(Debug, PartialEq, Eq, Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "PascalCase")]
    struct Lists {
        number: Vec<String>,
        #[serde(default)]
        letter: Vec<String>,
        title: Option<String>,
    }

    fn lists(content: &str) -> Result<Lists, Malformed> {
        read(&format!("<Lists>{content}</Lists>"), "Lists")
    }

    /// The content of the only element of a document.
    fn content(document: &str) -> Result<String, Malformed> {
        read(document, "a")
    }

    #[test]
    fn text_is_read_as_it_was_meant() {
        let read = |text: &str| content(&format!("<a>{text}</a>")).unwrap();
        assert_eq!(read(""), "");
        assert_eq!(read(" x\ty "), " x\ty ");
        assert_eq!(read("a&amp;b&lt;&#x43;&#68;"), "a&b<CD");
        assert_eq!(read("a<!-- no --><![CDATA[<b>&amp;]]>c"), "a<b>&amp;c");
        assert_eq!(read("a\r\nb&#13;c"), "a\nb\rc");
        assert_eq!(
            content("<?xml version=\"1.0\"?>\n<x:a xmlns:x=\"y\"/>\n").unwrap(),
            ""
        );
    }

    #[test]
    fn what_is_written_is_read_again() {
        let text = " a&b<c>d\"e'f\r\n\t\u{e9}\u{10ffff} ";
        let mut xml = String::new();
        push_element(&mut xml, "a", text, TextForm::Exact);
        assert_eq!(content(&xml).unwrap(), text);
    }

    #[test]
    fn text_for_people_has_no_control_characters() {
        let mut xml = String::new();
        push_element(&mut xml, "a", "<b> & \"c\" 'd'\r\n\t\u{1}", TextForm::Printable);
        assert_eq!(xml, "<a>&lt;b&gt; &amp; &quot;c&quot; &apos;d&apos;?\n\t?</a>");
    }

    #[test]
    fn malformed_documents_are_refused() {
        for document in [
            "<a>",
            "<a>x</b>",
            "<a>x & y</a>",
            "<a>&nbsp;</a>",
            "<a>&#1;</a>",
            "<a>\u{1}</a>",
            "<a>\u{ffff}</a>",
            "<a><b/></a>",
            "<a><?b?></a>",
            "<a>x</a>y",
            "<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>",
            "<!DOCTYPE a><a>x</a>",
        ] {
            assert_eq!(content(document), Err(Malformed), "{document}");
        }
    }
    #[test]
    fn prefixes_attributes_and_comments_are_ignored() {
        let document = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- a -->\n<x:Lists xmlns=\"y\" xmlns:x=\"z\" b=\"c\">\n\
            <Number d=\"e\"> 1 </Number>\n<x:Letter/> <!-- f --> <x:Title>g</x:Title><x:Number> </x:Number></x:Lists>\n";
        let expected = Lists {
            number: vec![" 1 ".to_owned(), " ".to_owned()],
            letter: vec![String::new()],
            title: Some("g".to_owned()),
        };
        assert_eq!(read(document, "Lists"), Ok(expected));
        assert_eq!(read::<Lists>(document, "List"), Err(Malformed));
    }

    #[test]
    fn unknown_and_doubled_elements_are_refused() {
        assert!(lists("<Number/><Title/>").is_ok());
        for content in [
            "",
            "<Title/>",
            "<Number/><Other/>",
            "<Number/><number/>",
            "<Number/><x:y:Number/>",
            "<Number/>text",
            "<Number/><![CDATA[text]]>",
            "<Number/><Title/><Title/>",
            "<Title/><Number/><Title/><Number/>",
            "<Number><Number/></Number>",
            "<Number>text<Number/></Number>",
            "<Number/><Number><?xml version=\"1.0\"?></Number>",
        ] {
            assert_eq!(lists(content), Err(Malformed), "{content}");
        }
    }

    #[test]
    fn few_elements_wait_for_the_end_of_a_list() {
        let mixed = |letters: usize| lists(&format!("<Number/>{}<Number/>", "<Letter/>".repeat(letters)));
        assert_eq!(mixed(32).unwrap().letter.len(), 32);
        assert_eq!(mixed(33), Err(Malformed));
    }

    #[test]
    fn serde_alone_accepts_malformed_documents() {
        for document in [
            "<b>x</b>",
            "<a>x</a>y",
            "<a>x</a><a>y</a>",
            "<a>x</a></b>",
            "<a>x</a>&y;",
            "<a>x<?b?></a>",
            "<!DOCTYPE a><a>x</a>",
            "<a>&#1;</a>",
            "<a>\u{1}</a>",
            "<a>\u{ffff}</a>",
        ] {
            assert!(from_str::<String>(document).is_ok(), "{document}");
            assert_eq!(content(document), Err(Malformed), "{document}");
        }
    }

    #[test]
    fn serde_alone_reads_other_values() {
        #[derive(Deserialize)]
        #[serde(rename_all = "PascalCase")]
        struct Titled {
            title: Option<String>,
        }
        let nil = "<Lists xmlns:i=\"http://www.w3.org/2001/XMLSchema-instance\"><Number/><Title i:nil=\"true\">a</Title></Lists>";
        assert_eq!(from_str::<Titled>(nil).unwrap().title, None);
        assert_eq!(read::<Lists>(nil, "Lists").unwrap().title.as_deref(), Some("a"));
        assert!(from_str::<Lists>(nil).is_err(), "attributes are unknown fields");
        let next_line = "<?xml version=\"1.1\"?><a>\u{85}</a>";
        assert_eq!(from_str::<String>(next_line).unwrap(), "\n");
        assert_eq!(content(next_line).unwrap(), "\u{85}");
        let written = quick_xml::se::to_string_with_root("a", "\r").unwrap();
        assert_eq!(content(&written).unwrap(), "\n");
    }
}
