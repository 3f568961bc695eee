//! Compares schemas with the values that forms accept, using a validator of the schema keywords in
//! use.

use proptest::prelude::*;
use regex_lite::Regex;
use serde_json::{Value, json};

use crate::{Form, Name, ResourceKind};

/// Returns true if a value is valid against a schema.
pub(crate) fn is_valid(schema: &Value, value: &Value) -> bool {
    if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
        return match reference.rsplit('/').next().unwrap() {
            "Name" => serde_json::from_value::<Name>(value.clone()).is_ok(),
            _ => !value.is_null(),
        };
    }
    if let Some(items) = schema.get("oneOf").and_then(Value::as_array) {
        return items.iter().filter(|alternative| is_valid(alternative, value)).count() == 1;
    }
    has_type(&schema["type"], value)
        && schema.get("enum").is_none_or(|values| values.as_array().unwrap().contains(value))
        && value.as_str().is_none_or(|text| is_valid_text(schema, text))
        && value.as_f64().is_none_or(|number| is_valid_number(schema, number))
        && value.as_array().is_none_or(|items| is_valid_list(schema, items))
}

fn has_type(expected: &Value, value: &Value) -> bool {
    match expected {
        Value::Array(types) => types.iter().any(|alternative| has_type(alternative, value)),
        _ => match expected.as_str().unwrap() {
            "null" => value.is_null(),
            "string" => value.is_string(),
            "integer" => value.is_u64() || value.is_i64(),
            "boolean" => value.is_boolean(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("{other}"),
        },
    }
}

fn is_valid_text(schema: &Value, text: &str) -> bool {
    let is_short =
        schema["maxLength"].as_u64().is_none_or(|max| text.chars().count() as u64 <= max);
    let matches = |pattern| Regex::new(pattern).unwrap().is_match(text);
    is_short && schema["pattern"].as_str().is_none_or(matches)
}

fn is_valid_number(schema: &Value, number: f64) -> bool {
    schema["minimum"].as_f64().is_none_or(|min| number >= min)
        && schema["maximum"].as_f64().is_none_or(|max| number <= max)
        && schema["multipleOf"].as_f64().is_none_or(|step| number % step == 0.0)
}

fn is_valid_list(schema: &Value, items: &[Value]) -> bool {
    let count = items.len() as u64;
    let is_new = |(index, item): (usize, &Value)| !items[..index].contains(item);
    schema["minItems"].as_u64().is_none_or(|min| count >= min)
        && schema["maxItems"].as_u64().is_none_or(|max| count <= max)
        && (schema["uniqueItems"] != true || items.iter().enumerate().all(is_new))
        && items.iter().all(|item| is_valid(&schema["items"], item))
}

/// Returns every form of a key, with its schema.
fn forms() -> Vec<(Form, Value)> {
    let keys = ResourceKind::ALL.into_iter().flat_map(ResourceKind::keys);
    keys.map(|key| (key.form, serde_json::to_value(key.form.schema()).unwrap())).collect()
}

/// Returns true for forms whose schema permits exactly the ASCII texts that the form accepts. For
/// other forms the daemon checks rules that the schema does not express.
const fn is_exact(form: Form) -> bool {
    matches!(
        form,
        Form::Name
            | Form::Names { .. }
            | Form::HostName
            | Form::DnsName
            | Form::DnsNames { .. }
            | Form::UnixSocketPath
            | Form::FilePath
            | Form::Accounts { .. }
            | Form::Serial { .. }
            | Form::SingleLineText { .. }
            | Form::Vlan
            | Form::Cpus
            | Form::Number { .. }
            | Form::NumberOrKeyword { .. }
            | Form::OneOfNumbers(_)
            | Form::Flag
            | Form::OneOfKeywords(_)
    )
}

fn agree(value: &Value) {
    for (form, schema) in forms() {
        let (accepted, valid) = (form.accepts(value), is_valid(&schema, value));
        assert!(valid || !accepted, "{form:?} accepts {value}, and its schema {schema} does not");
        if is_exact(form) {
            assert!(
                accepted || !valid,
                "{form:?} refuses {value}, and its schema {schema} does not"
            );
        }
    }
}

/// Valid texts of every form, and similar invalid ones.
const TEXTS: &[&str] = &[
    "",
    "a",
    "web-1",
    "-a",
    "a-",
    "a.b",
    ".",
    "..",
    "all",
    "eth0",
    "eth 0",
    "0000:03:00.0",
    "00010000:03:1f.7",
    "/",
    "/a",
    "/a/",
    "a/b",
    "/a\0",
    "127.0.0.1:80",
    "127.0.0.1:0",
    "192.0.2.1:8443",
    "[::1]:7446",
    "[fe80::1%3]:22",
    "node2.example.net:8443",
    "a.b:1",
    "https://192.0.2.10:2379",
    "http://[2001:db8::1]:2379",
    "http://a",
    "52:54:00:12:34:56",
    "52-54-00-12-34-56",
    "53:54:00:12:34:56",
    "52:54-00:12:34:56",
    "10 GiB",
    "4096",
    " 1 MiB ",
    "512 B",
    "1KiB",
    "measure",
    "20-29",
    "20 - 29",
    "9999",
    "vms/web.vhdx",
    "ä/ß.raw",
    "a\nb",
    "private",
    "balanced",
    "virtio",
    "auto",
    "\u{85}",
    "a b",
    " a",
    "a:b",
    "107",
    "x\u{1b}",
];

#[test]
fn schemas_admit_the_values_that_forms_accept() {
    for text in TEXTS {
        agree(&json!(text));
        agree(&json!([text]));
        agree(&json!([text, text]));
        agree(&json!([text, "left"]));
    }
    for length in [14, 15, 16, 63, 64, 107, 108, 255, 256, 1023, 1024, 4095, 4096] {
        agree(&json!("a".repeat(length)));
        agree(&json!(format!("/{}", "a".repeat(length - 1))));
    }
    for number in [0, 1, 2, 63, 64, 67, 68, 512, 1000, 4094, 4095, 4096, 65_535, 65_536, 1 << 20] {
        agree(&json!(number));
        agree(&json!([number]));
        agree(&json!([number, number]));
        agree(&json!([number, number + 1]));
    }
    for value in
        [json!(null), json!(true), json!(-1), json!(1.5), json!([]), json!({}), json!([1, "2-3"])]
    {
        agree(&value);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(50))]

    #[test]
    fn schemas_admit_texts_that_forms_accept(text in "[ -~]{0,20}", list in any::<bool>()) {
        let value = json!(text);
        agree(&if list { json!([value]) } else { value });
    }

    #[test]
    fn schemas_admit_numbers_that_forms_accept(number in any::<u64>(), shift in 0u32..64) {
        agree(&json!(number >> shift));
    }

    #[test]
    fn schemas_admit_addresses_that_forms_accept(
        address in any::<std::net::SocketAddr>(),
        network in any::<std::net::IpAddr>(),
    ) {
        agree(&json!(address.to_string()));
        agree(&json!([network.to_string()]));
        agree(&json!([format!("http://{address}")]));
    }
}
