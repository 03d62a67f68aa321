//! Strict reading and canonical writing of small S3 documents.
//!
//! The gateway writes anew what it has decided on, so that the store cannot read the document in another way. The elements are read one by one
//! and not by `serde`, which accepts text between elements, a second root and a `DOCTYPE`, and knows neither the order of elements nor characters
//! that XML cannot express.

use quick_xml::{Reader, escape::resolve_predefined_entity, events::Event};

/// The namespace of S3's documents.
pub const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// The document is not well-formed, or has other elements than expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// Reads the elements of a document in their order. Prefixes and attributes are ignored.
#[derive(Debug)]
pub struct Elements<'a> {
    reader: Reader<&'a [u8]>,
    /// The number of open elements.
    depth: usize,
}

impl<'a> Elements<'a> {
    /// The elements of a document.
    pub fn new(document: &'a str) -> Self {
        let mut reader = Reader::from_str(document);
        reader.config_mut().expand_empty_elements = true;
        Self { reader, depth: 0 }
    }

    /// Opens the next child of the open element, and returns its name. `None` closes the open element, which has no more
    /// children; at the top level, `None` is the end of the document.
    ///
    /// # Errors
    /// For text between elements, and whatever is no element, comment or declaration.
    pub fn child(&mut self) -> Result<Option<String>, Malformed> {
        loop {
            match self.next_event()? {
                Event::Start(element) => {
                    self.depth += 1;
                    let name = std::str::from_utf8(element.local_name().into_inner());
                    return name.map(|name| Some(name.to_owned())).map_err(|_| Malformed);
                }
                Event::End(_) => {
                    self.depth = self.depth.saturating_sub(1);
                    return Ok(None);
                }
                Event::Eof if self.depth == 0 => return Ok(None),
                Event::Comment(_) | Event::Decl(_) => {}
                event => {
                    let text = text_of(&event, UnknownEntity::Refused).ok_or(Malformed)?;
                    if !text.bytes().all(is_white_space) {
                        return Err(Malformed);
                    }
                }
            }
        }
    }

    /// The text of the open element, which has no children. Closes it.
    ///
    /// # Errors
    /// For children, unknown entities, and characters that XML 1.0 cannot express.
    pub fn content(&mut self) -> Result<String, Malformed> {
        let mut content = String::new();
        loop {
            match self.next_event()? {
                Event::End(_) => {
                    self.depth = self.depth.saturating_sub(1);
                    break;
                }
                Event::Comment(_) => {}
                event => content.push_str(&text_of(&event, UnknownEntity::Refused).ok_or(Malformed)?),
            }
        }
        if content.chars().all(is_xml_character) {
            Ok(content)
        } else {
            Err(Malformed)
        }
    }

    fn next_event(&mut self) -> Result<Event<'a>, Malformed> {
        self.reader.read_event().map_err(|_| Malformed)
    }
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
    xml.push('<');
    xml.push_str(name);
    xml.push('>');
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
    xml.push_str("</");
    xml.push_str(name);
    xml.push('>');
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
    use super::*;

    /// The content of the only element of a document.
    fn content(document: &str) -> Result<String, Malformed> {
        let mut elements = Elements::new(document);
        assert_eq!(elements.child()?.as_deref(), Some("a"));
        let content = elements.content()?;
        assert_eq!(elements.child()?, None);
        Ok(content)
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
            let mut elements = Elements::new(document);
            let mut read = || {
                elements.child()?;
                elements.content()?;
                elements.child()
            };
            assert_eq!(read(), Err(Malformed), "{document}");
        }
    }
}
