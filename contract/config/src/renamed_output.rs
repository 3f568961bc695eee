//! Serialization with old names: responses contain renamed fields under both names, stored state
//! under the old one, which the previous version reads.
//!
//! serde passes the name of each struct to the serializer. It is the name of the component in the
//! OpenAPI document, so that the table of renames applies to exactly the documented fields.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde::ser::{
    SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};

use crate::json_tree::parse_json;
use crate::renames::renames_of_schema;
use crate::strict_json::from_value_with_renames;

/// Names of renamed fields in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Names {
    /// Both names, the new one first.
    Both,
    /// The old name only, for stored state.
    Old,
}

/// Converts a value to JSON with both names of renamed fields, for responses.
///
/// # Errors
/// The value cannot be represented in JSON, for example a path that is not UTF-8.
pub fn to_json<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&With { value, names: Names::Both })
}

/// As [`to_json`], with indentation.
///
/// # Errors
/// The value cannot be represented in JSON.
pub fn to_json_pretty<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<String> {
    serde_json::to_string_pretty(&With { value, names: Names::Both })
}

/// Converts a value to JSON with the old names of renamed fields, for stored state. The previous
/// version reads it as well.
///
/// # Errors
/// The value cannot be represented in JSON.
pub fn to_stored_json<T: Serialize + ?Sized>(value: &T) -> serde_json::Result<Vec<u8>> {
    serde_json::to_vec(&With { value, names: Names::Old })
}

/// Parses JSON with old or new names of renamed fields: a response, or stored state.
///
/// # Errors
/// The text is not JSON or does not match the type, or both names of a field have different values.
pub fn from_json<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    from_value_with_renames(parse_json(json)?).map(|(value, _)| value)
}

/// Value that is serialized with these names.
struct With<'a, T: ?Sized> {
    value: &'a T,
    names: Names,
}

impl<T: Serialize + ?Sized> Serialize for With<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(Renaming { inner: serializer, names: self.names, schema: "" })
    }
}

/// Serializer, or serializer of one value's elements, that writes renamed fields under `names` and
/// passes everything else on to `inner`.
struct Renaming<S> {
    inner: S,
    names: Names,
    /// Component whose fields are serialized; empty if these are not fields of a struct.
    schema: &'static str,
}

impl<S> Renaming<S> {
    const fn with<'a, T: ?Sized>(&self, value: &'a T) -> With<'a, T> {
        With { value, names: self.names }
    }
}

macro_rules! pass_scalars {
    ($($method:ident($type:ty))*) => {$(
        fn $method(self, value: $type) -> Result<S::Ok, S::Error> {
            self.inner.$method(value)
        }
    )*};
}

/// Implements serializer methods that begin a sequence, tuple or variant.
macro_rules! pass_elements {
    ($($method:ident($($name:ident: $type:ty),*) -> $elements:ident;)*) => {$(
        fn $method(self, $($name: $type),*) -> Result<Renaming<S::$elements>, S::Error> {
            let Self { inner, names, schema } = self;
            let elements = inner.$method($($name),*)?;
            Ok(Renaming { inner: elements, names, schema })
        }
    )*};
}

impl<S: Serializer> Serializer for Renaming<S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Renaming<S::SerializeSeq>;
    type SerializeTuple = Renaming<S::SerializeTuple>;
    type SerializeTupleStruct = Renaming<S::SerializeTupleStruct>;
    type SerializeTupleVariant = Renaming<S::SerializeTupleVariant>;
    type SerializeMap = Renaming<S::SerializeMap>;
    type SerializeStruct = Renaming<S::SerializeStruct>;
    type SerializeStructVariant = Renaming<S::SerializeStructVariant>;

    pass_scalars! {
        serialize_bool(bool) serialize_i8(i8) serialize_i16(i16) serialize_i32(i32)
        serialize_i64(i64) serialize_i128(i128) serialize_u8(u8) serialize_u16(u16)
        serialize_u32(u32) serialize_u64(u64) serialize_u128(u128) serialize_f32(f32)
        serialize_f64(f64) serialize_char(char) serialize_str(&str) serialize_bytes(&[u8])
        serialize_unit_struct(&'static str)
    }

    pass_elements! {
        serialize_seq(len: Option<usize>) -> SerializeSeq;
        serialize_tuple(len: usize) -> SerializeTuple;
        serialize_tuple_struct(name: &'static str, len: usize) -> SerializeTupleStruct;
        serialize_tuple_variant(
            name: &'static str, index: u32, variant: &'static str, len: usize
        ) -> SerializeTupleVariant;
        serialize_map(len: Option<usize>) -> SerializeMap;
        serialize_struct_variant(
            name: &'static str, index: u32, variant: &'static str, len: usize
        ) -> SerializeStructVariant;
    }

    fn serialize_struct(
        self,
        name: &'static str,
        len: usize,
    ) -> Result<Renaming<S::SerializeStruct>, S::Error> {
        // `additional` makes the length an upper limit, which is sufficient: no format in use
        // writes it. A length of 0 remains 0, since JSON closes an object of length 0 at once.
        let additional = if len == 0 { 0 } else { renames_of_schema(name).count() };
        let inner = self.inner.serialize_struct(name, len.saturating_add(additional))?;
        Ok(Renaming { inner, names: self.names, schema: name })
    }

    fn serialize_none(self) -> Result<S::Ok, S::Error> {
        self.inner.serialize_none()
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        let value = self.with(value);
        self.inner.serialize_some(&value)
    }

    fn serialize_unit(self) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
    ) -> Result<S::Ok, S::Error> {
        self.inner.serialize_unit_variant(name, index, variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let value = self.with(value);
        self.inner.serialize_newtype_struct(name, &value)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        let value = self.with(value);
        self.inner.serialize_newtype_variant(name, index, variant, &value)
    }
}

/// Implements serializers of the elements of sequences and tuples. They pass each element on to the
/// inner serializer.
macro_rules! pass_each {
    ($($trait:ident $method:ident)*) => {$(
        impl<C: $trait> $trait for Renaming<C> {
            type Ok = C::Ok;
            type Error = C::Error;

            fn $method<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
                let value = self.with(value);
                self.inner.$method(&value)
            }

            fn end(self) -> Result<C::Ok, C::Error> {
                self.inner.end()
            }
        }
    )*};
}

pass_each! {
    SerializeSeq serialize_element
    SerializeTuple serialize_element
    SerializeTupleStruct serialize_field
    SerializeTupleVariant serialize_field
}

impl<C: SerializeMap> SerializeMap for Renaming<C> {
    type Ok = C::Ok;
    type Error = C::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), C::Error> {
        self.inner.serialize_key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), C::Error> {
        let value = self.with(value);
        self.inner.serialize_value(&value)
    }

    fn end(self) -> Result<C::Ok, C::Error> {
        self.inner.end()
    }
}

impl<C: SerializeStruct> SerializeStruct for Renaming<C> {
    type Ok = C::Ok;
    type Error = C::Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), C::Error> {
        let value = self.with(value);
        let old = renames_of_schema(self.schema).find(|rename| rename.new == key);
        if old.is_none() || self.names == Names::Both {
            self.inner.serialize_field(key, &value)?;
        }
        match old {
            Some(rename) => self.inner.serialize_field(rename.old, &value),
            None => Ok(()),
        }
    }

    fn skip_field(&mut self, key: &'static str) -> Result<(), C::Error> {
        self.inner.skip_field(key)
    }

    fn end(self) -> Result<C::Ok, C::Error> {
        self.inner.end()
    }
}

impl<C: SerializeStructVariant> SerializeStructVariant for Renaming<C> {
    type Ok = C::Ok;
    type Error = C::Error;

    fn serialize_field<T: Serialize + ?Sized>(
        &mut self,
        key: &'static str,
        value: &T,
    ) -> Result<(), C::Error> {
        let value = self.with(value);
        self.inner.serialize_field(key, &value)
    }

    fn end(self) -> Result<C::Ok, C::Error> {
        self.inner.end()
    }
}
