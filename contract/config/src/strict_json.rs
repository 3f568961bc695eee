//! Deserializer of JSON values without a leniency of serde: serde's derived code accepts an array
//! of the fields' values in place of an object; this deserializer rejects it.

use core::cell::RefCell;

use serde::de::value::{MapAccessDeserializer, MapDeserializer, SeqDeserializer};
use serde::de::{DeserializeOwned, Deserializer, Error, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::{Map, Value};

use crate::old_names::{name_conflict_message, replace_old_names};
use crate::renames::Rename;

/// JSON value that is deserialized strictly. Both names of renamed fields are accepted.
struct Strict<'n> {
    value: Value,
    /// Deprecated field names found in the input, with their replacements.
    renames: &'n Found,
}

/// Deserializes a value strictly. Also returns the renames whose old names the value contains.
///
/// # Errors
/// The value does not match the type, or both names of a field have different values.
pub fn from_value_with_renames<T: DeserializeOwned>(
    value: Value,
) -> serde_json::Result<(T, Vec<&'static Rename>)> {
    let renames = Found::default();
    let read = T::deserialize(Strict::new(value, &renames))?;
    Ok((read, renames.into_inner()))
}

/// Deprecated field names found in the input, with their replacements.
type Found = RefCell<Vec<&'static Rename>>;

impl<'n> Strict<'n> {
    /// Returns the deserializer of a value. It adds old names to `renames`.
    const fn new(value: Value, renames: &'n Found) -> Self {
        Self { value, renames }
    }

    fn entries<'de>(
        table: Map<String, Value>,
        renames: &'n Found,
    ) -> MapDeserializer<'de, impl Iterator<Item = (Key, Self)>, serde_json::Error> {
        MapDeserializer::new(
            table.into_iter().map(move |(key, value)| (Key(key), Self { value, renames })),
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
        let Self { value, renames } = self;
        match value {
            Value::Array(items) => {
                let items = items.into_iter().map(|value| Strict { value, renames });
                let mut items = SeqDeserializer::new(items);
                let read = visitor.visit_seq(&mut items)?;
                items.end()?;
                Ok(read)
            }
            Value::Object(table) => {
                let mut entries = Self::entries(table, renames);
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
        let Self { value, renames } = self;
        match value {
            Value::Array(_) => Err(Error::invalid_type(Unexpected::Seq, &visitor)),
            Value::Object(mut table) => {
                replace_old_names(name, &mut table, |rename| renames.borrow_mut().push(rename))
                    .map_err(|renames| {
                        let text = renames.iter().map(|rename| {
                            format!("`{}` {}", rename.new, name_conflict_message(rename))
                        });
                        Error::custom(text.collect::<Vec<_>>().join("; "))
                    })?;
                Strict { value: Value::Object(table), renames }.deserialize_any(visitor)
            }
            value => Strict { value, renames }.deserialize_any(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        let Self { value, renames } = self;
        match value {
            Value::Object(table) if table.len() == 1 => {
                visitor.visit_enum(MapAccessDeserializer::new(Self::entries(table, renames)))
            }
            other => other.deserialize_enum(name, variants, visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map identifier ignored_any
    }
}

/// Key of an object, also for maps with integer keys, which JSON writes as texts.
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
