//! Deserializer of JSON values without a leniency of serde: serde's derived code accepts an array
//! of the fields' values in place of an object; this deserializer rejects it.

use core::cell::RefCell;

use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{Deserializer, Error, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

use crate::renamed_input::{accept, conflict};
use crate::renames::Rename;

/// JSON value that is deserialized strictly. Both names of renamed fields are accepted.
pub(crate) struct Strict<'n> {
    value: Value,
    /// Deprecated field names found in the input, with their replacements.
    found: &'n Found,
}

/// Deprecated field names found in the input, with their replacements.
pub(crate) type Found = RefCell<Vec<&'static Rename>>;

impl<'n> Strict<'n> {
    /// Returns the deserializer of a value. It adds old names to `found`.
    pub(crate) const fn new(value: Value, found: &'n Found) -> Self {
        Self { value, found }
    }

    fn entries<'de>(
        table: Map<String, Value>,
        found: &'n Found,
    ) -> MapDeserializer<'de, impl Iterator<Item = (Key, Self)>, serde_json::Error> {
        MapDeserializer::new(
            table.into_iter().map(move |(key, value)| (Key(key), Self { value, found })),
        )
    }
}

impl<'de> IntoDeserializer<'de, serde_json::Error> for Strict<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Strict<'_> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        let Self { value, found } = self;
        match value {
            Value::Array(items) => {
                let items = items.into_iter().map(|value| Strict { value, found });
                let mut items = SeqDeserializer::new(items);
                let read = visitor.visit_seq(&mut items)?;
                items.end()?;
                Ok(read)
            }
            Value::Object(table) => {
                let mut entries = Self::entries(table, found);
                let read = visitor.visit_map(&mut entries)?;
                entries.end()?;
                Ok(read)
            }
            other => other.deserialize_any(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        if self.value.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        let Self { value, found } = self;
        match value {
            Value::Array(_) => Err(Error::invalid_type(Unexpected::Seq, &visitor)),
            Value::Object(mut table) => {
                accept(name, &mut table, |rename| found.borrow_mut().push(rename)).map_err(
                    |renames| {
                        let text =
                            renames.iter().map(|of| format!("`{}` {}", of.new, conflict(of)));
                        Error::custom(text.collect::<Vec<_>>().join("; "))
                    },
                )?;
                Strict { value: Value::Object(table), found }.deserialize_any(visitor)
            }
            value => Strict { value, found }.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        let Self { value, found } = self;
        match value {
            Value::Object(table) if table.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(Self::entries(table, found)))
            }
            other => other.deserialize_enum(name, variants, visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

/// Key of an object. JSON has texts in place of integers as keys of maps.
struct Key(String);

impl<'de> IntoDeserializer<'de, serde_json::Error> for Key {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! integer_keys {
    ($($method:ident $visit:ident)*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
            match self.0.parse() {
                Ok(number) => visitor.$visit(number),
                Err(_) => visitor.visit_string(self.0),
            }
        }
    )*};
}

impl<'de> Deserializer<'de> for Key {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_string(self.0)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        Value::String(self.0).deserialize_enum(name, variants, visitor)
    }

    integer_keys! {
        deserialize_i8 visit_i8 deserialize_i16 visit_i16 deserialize_i32 visit_i32
        deserialize_i64 visit_i64 deserialize_u8 visit_u8 deserialize_u16 visit_u16
        deserialize_u32 visit_u32 deserialize_u64 visit_u64
    }

    forward_to_deserialize_any! {
        bool i128 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::{
        DiskFormat, IncomingMigrationRequest, MigrateVmRequest, MoveQueueRequest, WhatIfRequest,
        parse_request,
    };

    #[test]
    fn an_object_is_no_list() {
        let read = |body: &str| parse_request::<WhatIfRequest>(body.as_bytes());
        for good in [
            r#"{"proposals":[{"qos_policy":{"name":"a","limits":{"max_iops":7}}}]}"#,
            r#"{"proposals":[{"without_disk":"a"},{"store":{"name":"a","capacity_iops":1.0}}]}"#,
        ] {
            let expected =
                serde_json::from_str::<WhatIfRequest>(&good.replace("1.0", "1")).unwrap();
            assert_eq!(read(good), Ok(expected), "{good}");
        }
        for bad in [
            r#"[[]]"#,
            r#"{"proposals":[{"qos_policy":{"name":"a","limits":[null,null]}}]}"#,
            r#"{"proposals":[{"qos_policy":["a",null,{}]}]}"#,
            r#"{"proposals":[{"without_disk":"a","disk":{"name":"b"}}]}"#,
            r#"{"proposals":[{"disk":{"name":"b"},"disk":{"name":"c"}}]}"#,
        ] {
            let error = read(bad).unwrap_err();
            assert_eq!(error.code.http_status(), 400, "{bad}: {error}");
        }
        assert!(parse_request::<MoveQueueRequest>(b"[1]").is_err());
    }

    #[test]
    fn texts_without_their_syntax_are_no_violation_of_the_schema() {
        let code = |body: &str| {
            parse_request::<MigrateVmRequest>(body.as_bytes()).unwrap_err().code.as_str()
        };
        assert_eq!(code(r#"{"to":"n2","bandwidth":"10 parsecs"}"#), "invalid_value");
        assert_eq!(code(r#"{"to":"n2","bandwidth":[10]}"#), "malformed");
        assert_eq!(code(r#"{"to":"/"}"#), "invalid_value");
        assert_eq!(code(r#"{"to":1}"#), "malformed");
        assert_eq!(code(r#"{"to":"n2","two":2}"#), "unknown_key");
        assert_eq!(code("{}"), "malformed");
        assert_eq!(code("{"), "malformed");
    }

    #[test]
    fn a_large_request_is_read_as_it_was_written() {
        let vm = json!({ "name": "web", "memory_bytes": 64 << 20 });
        let request = json!({
            "protocol": 2, "id": "a", "from": "b", "vm": vm, "as_started": vm, "is_paused": false,
            "uuid": "c", "nics": [{ "name": "web", "switch": "lan", "backend": "tap", "trunk": [1, "2-3"] }],
            "disks": [{ "name": "web", "store": "ssd", "format": "raw", "size_bytes": "1 GiB" }],
            "qos_policies": [], "is_kvm": true, "cpus_now": 1, "qemu_version": "7.2", "machine": "q35",
            "ports": [{ "device": "nic/web", "port": 1 }], "cpu_flags": ["sse"],
        });
        let body = request.to_string();
        let read: IncomingMigrationRequest = parse_request(body.as_bytes()).unwrap();
        assert_eq!(read, serde_json::from_str(&body).unwrap());
        assert_eq!(read.disks[0].format, DiskFormat::Raw);
    }
}
