//! Chat templates: conversations as the text that a model was trained on.

use std::fmt::Write;
use std::io;
use std::sync::Arc;

use chrono::{DateTime, Local, TimeZone};
use minijinja::value::{Kwargs, Value};
use minijinja::{Environment, Error as JinjaError, ErrorKind as JinjaKind, context};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter, Serializer};

use crate::error::{Error, ErrorKind, Result};

/// The name of the template in the environment.
const NAME: &str = "chat template";
/// Instructions after which a template is stopped. Those of models need a few for each message.
const FUEL: u64 = 20_000_000;
/// The most bytes of a text: of as many tokens as a model may have been trained for, 2^24.
const MAX_TEXT_BYTES: usize = 64 << 20;

/// A message of a conversation.
///
/// ```
/// use scry_models::Message;
///
/// let message = Message::new("user", "What is a GPU?");
/// assert_eq!(message.role, "user");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Who says it: `system`, `user` or `assistant`; some models have others.
    pub role: String,
    /// The text.
    pub content: String,
}

impl Message {
    /// Creates a message.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Self {
        Self { role: role.into(), content: content.into() }
    }
}

/// The texts of special tokens, which templates use.
#[derive(Debug, Clone, Default)]
pub(super) struct TemplateTokens {
    pub(super) bos: String,
    pub(super) eos: String,
    pub(super) unk: String,
    pub(super) pad: String,
}

/// A chat template in Jinja, as model files have it. It has the functions and filters that the
/// library transformers defines: `raise_exception`, `strftime_now`, `tojson`, and methods of
/// Python's strings, lists and dictionaries.
///
/// ```
/// use scry_models::{ChatTemplate, Message};
///
/// let template = ChatTemplate::new(
///     "{% for m in messages %}<{{ m.role }}>{{ m['content'].strip() }}\n{% endfor %}",
/// )?;
/// assert_eq!(template.render(&[Message::new("user", " hi ")], false)?, "<user>hi\n");
/// # Ok::<(), scry_models::Error>(())
/// ```
#[derive(Clone)]
pub struct ChatTemplate(Arc<Inner>);

struct Inner {
    environment: Environment<'static>,
    tokens: TemplateTokens,
    source: String,
}

impl ChatTemplate {
    /// Parses a template. Special tokens are empty texts in it. A template is a program of its
    /// author: its instructions and the text that it writes (64 MiB) are limited, but not the
    /// memory of the values that it computes.
    ///
    /// ```
    /// let error = scry_models::ChatTemplate::new("{% for %}").unwrap_err();
    /// assert_eq!(error.kind(), scry_models::ErrorKind::Template);
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Template`] if the template is not valid.
    pub fn new(source: &str) -> Result<Self> {
        Self::with_tokens("ChatTemplate::new", source, TemplateTokens::default())
    }

    pub(super) fn with_tokens(
        call: &'static str,
        source: &str,
        tokens: TemplateTokens,
    ) -> Result<Self> {
        let mut environment = environment(FUEL);
        environment
            .add_template_owned(NAME, source.to_owned())
            .map_err(|error| failure(call, &error))?;
        Ok(Self(Arc::new(Inner { environment, tokens, source: source.to_owned() })))
    }

    /// Returns the text of the template.
    #[must_use]
    pub fn source(&self) -> &str {
        &self.0.source
    }

    /// Returns the text of a conversation. With `add_generation_prompt` it ends where the answer
    /// begins.
    ///
    /// ```
    /// use scry_models::{ChatTemplate, Message};
    ///
    /// let source = "{% for m in messages %}{{ m.content }}{% endfor %}\
    ///     {% if add_generation_prompt %}<assistant>{% endif %}";
    /// let template = ChatTemplate::new(source)?;
    /// assert_eq!(template.render(&[Message::new("user", "hi")], true)?, "hi<assistant>");
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::Template`] if the template rejects the conversation, for instance because roles
    /// do not alternate, or fails.
    pub fn render(&self, messages: &[Message], add_generation_prompt: bool) -> Result<String> {
        self.render_for("ChatTemplate::render", messages, add_generation_prompt, context! {})
    }

    /// Returns the text of a conversation, with more variables for the template, such as `tools`.
    /// Messages may have other fields than those of [`Message`]. Variables replace those of the
    /// same name that templates expect: `bos_token`, `eos_token`, `unk_token`, `pad_token`,
    /// `tools`, `documents`.
    ///
    /// ```
    /// use serde_json::json;
    ///
    /// let source = "{{ tools | tojson }} {{ messages | length }}";
    /// let template = scry_models::ChatTemplate::new(source)?;
    /// let tools = json!({ "tools": [{ "name": "search", "score": 0.5 }] });
    /// let text = template.render_with(&json!([]), false, &tools)?;
    /// assert_eq!(text, r#"[{"name": "search", "score": 0.5}] 0"#);
    /// # Ok::<(), scry_models::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`ChatTemplate::render`].
    pub fn render_with(
        &self,
        messages: &impl Serialize,
        add_generation_prompt: bool,
        variables: &impl Serialize,
    ) -> Result<String> {
        let variables = Value::from_serialize(variables);
        self.render_for("ChatTemplate::render_with", messages, add_generation_prompt, variables)
    }

    fn render_for(
        &self,
        call: &'static str,
        messages: impl Serialize,
        add_generation_prompt: bool,
        variables: Value,
    ) -> Result<String> {
        let TemplateTokens { bos, eos, unk, pad } = &self.0.tokens;
        let expected = context! {
            messages => Value::from_serialize(messages),
            add_generation_prompt,
            bos_token => bos,
            eos_token => eos,
            unk_token => unk,
            pad_token => pad,
            tools => (),
            documents => (),
        };
        let mut text = Text(Vec::new());
        let template = self.0.environment.get_template(NAME);
        template
            .and_then(|it| it.render_captured_to(context! { ..variables, ..expected }, &mut text))
            .map_err(|error| failure(call, &error))?;
        Ok(String::from_utf8_lossy(&text.0).into_owned())
    }
}

/// The text of a conversation, of at most [`MAX_TEXT_BYTES`] bytes.
struct Text(Vec<u8>);

impl io::Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() > MAX_TEXT_BYTES - self.0.len() {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl std::fmt::Debug for ChatTemplate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("ChatTemplate").field(&self.0.source).finish()
    }
}

/// Returns an environment with what the library transformers defines.
fn environment(fuel: u64) -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_fuel(Some(fuel));
    environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
    environment.add_filter("tojson", to_json);
    environment.add_function("raise_exception", |problem: String| -> Result<Value, JinjaError> {
        Err(JinjaError::new(JinjaKind::InvalidOperation, problem))
    });
    environment.add_function("strftime_now", |format: &str| strftime(&Local::now(), format));
    environment
}

/// Formats a time as Python's `strftime`.
fn strftime<Z: TimeZone>(now: &DateTime<Z>, format: &str) -> Result<String, JinjaError>
where
    Z::Offset: std::fmt::Display,
{
    let mut text = String::new();
    write!(text, "{}", now.format(format)).map_err(|_| {
        let problem = format!("`{format}` is not a format of times");
        JinjaError::new(JinjaKind::InvalidOperation, problem)
    })?;
    Ok(text)
}

/// Returns a value as JSON in Python's layout. Unlike Jinja's own filter it escapes nothing for
/// HTML.
fn to_json(value: &Value, options: Kwargs) -> Result<String, JinjaError> {
    let indent: Option<usize> = options.get("indent")?;
    // What is written is never escaped; keys are in the order of the template.
    let _: Option<Value> = options.get("ensure_ascii")?;
    options.assert_all_used()?;
    let mut out = Vec::new();
    let written = match indent {
        Some(indent) => {
            let spaces = vec![b' '; indent.min(64)];
            let formatter = PrettyFormatter::with_indent(&spaces);
            value.serialize(&mut Serializer::with_formatter(&mut out, formatter))
        }
        None => value.serialize(&mut Serializer::with_formatter(&mut out, Python)),
    };
    written.map_err(|error| JinjaError::new(JinjaKind::BadSerialization, error.to_string()))?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Writes a space after commas and colons, as Python does.
struct Python;

impl Formatter for Python {
    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

fn failure(call: &'static str, error: &JinjaError) -> Error {
    let line = error.line().map_or(String::new(), |line| format!(", line {line}"));
    let detail = error.detail().unwrap_or_default();
    let problem = match error.kind() {
        JinjaKind::InvalidOperation if !detail.is_empty() => {
            format!("the chat template{line} rejects the conversation: {detail}")
        }
        JinjaKind::WriteFailure => {
            format!("the chat template{line} writes more than {MAX_TEXT_BYTES} bytes")
        }
        kind => format!("the chat template{line} fails: {kind}: {detail}"),
    };
    let help = "check roles and fields of the messages, or pass another template";
    Error::new(call, ErrorKind::Template, problem, help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use chrono::Utc;

    fn render(source: &str) -> String {
        let template = ChatTemplate::new(source).unwrap();
        template.render(&[Message::new("user", "a<b>\n")], true).unwrap()
    }

    #[test]
    fn python_methods_are_available() {
        let source = "{{ 'a b'.split(' ')[-1].upper() }}{{ 'xxa'.lstrip('x') }}\
            {{ messages[0].get('role') }}{{ messages[0].items() | length }}";
        assert_eq!(render(source), "Bauser2");
        assert_eq!(render("{{ messages[::-1][0]['content'].rstrip() }}"), "a<b>");
        assert_eq!(
            render("{% if 'x'.startswith('x') and messages is iterable %}y{% endif %}"),
            "y"
        );
    }

    #[test]
    fn blocks_are_trimmed() {
        assert_eq!(render("  {% if true %}\n  x\n  {% endif %}\ny\n"), "  x\ny");
        assert_eq!(
            render(
                "{% for i in range(9) %}{% if i == 2 %}{% break %}{% endif %}{{ i }}{% endfor %}"
            ),
            "01"
        );
        let namespace = "{% set ns = namespace(n=1) %}\
            {% for m in messages %}{% set ns.n = ns.n + 1 %}{% endfor %}{{ ns.n }}";
        assert_eq!(render(namespace), "2");
    }

    #[test]
    fn json_has_the_layout_of_python() {
        let value = "{'b': [1, 2.5, 'é<'], 'a': {}, 'n': none}";
        let dump = |options: &str| render(&format!("{{{{ {value} | tojson{options} }}}}"));
        assert_eq!(dump(""), r#"{"b": [1, 2.5, "é<"], "a": {}, "n": null}"#);
        assert_eq!(dump("(indent=2, ensure_ascii=false)").lines().nth(2), Some("    1,"));
        // Another order of keys is not written without a word.
        let template = ChatTemplate::new("{{ {'b': 1} | tojson(sort_keys=true) }}").unwrap();
        let error = template.render(&[], true).unwrap_err();
        assert!(error.to_string().contains("sort_keys"), "{error}");
    }

    #[test]
    fn times_are_formatted_as_in_python() {
        let time = Utc.with_ymd_and_hms(2025, 3, 9, 14, 5, 6).unwrap();
        assert_eq!(
            strftime(&time, "%d %b %Y, %A %B %-d %H:%M").unwrap(),
            "09 Mar 2025, Sunday March 9 14:05"
        );
        assert!(strftime(&time, "%Q").is_err());
        assert_eq!(render("{{ strftime_now('%Y') | length }}"), "4");
    }

    #[test]
    fn failures_are_reported() {
        let error = |source: &str| {
            let template = ChatTemplate::new(source)?;
            template.render(&[], false)
        };
        let text = |source: &str| error(source).unwrap_err().to_string();
        assert_eq!(
            text("\n{{ raise_exception('roles must alternate') }}"),
            "ChatTemplate::render: the chat template, line 2 rejects the conversation: roles must \
             alternate; help: check roles and fields of the messages, or pass another template"
        );
        assert!(text("{% if %}").starts_with("ChatTemplate::new: the chat template, line 1 fails"));
        assert!(text("{{ 'x'.unknown() }}").contains("unknown method"));
    }

    #[test]
    fn long_texts_are_errors() {
        // 1 GB.
        let source = "{% for _ in range(9999) %}{{ 'x' * 100000 }}{% endfor %}";
        let error = ChatTemplate::new(source).unwrap().render(&[], false).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("writes more than 67108864 bytes"), "{text}");
    }

    #[test]
    fn endless_templates_are_stopped() {
        let source = "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}";
        let error = environment(10_000).render_str(source, ()).unwrap_err();
        assert_eq!(error.kind(), JinjaKind::OutOfFuel);
    }
}
