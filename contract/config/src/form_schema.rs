//! JSON Schemas of forms, for the OpenAPI document.
//!
//! A schema admits every value that [`Form::accepts`] accepts. Rules that JSON Schema cannot
//! express (lengths in bytes, the range of a size written with a unit, the syntax of IPv6
//! addresses) are checked by the daemon only; violations result in `invalid_value`.

use serde_json::{Value, json};
use utoipa::openapi::schema::{
    ArrayBuilder, KnownFormat, Object, ObjectBuilder, OneOf, OneOfBuilder, SchemaFormat,
    SchemaType, Type,
};
use utoipa::openapi::{Array, Ref, RefOr, Schema};

use crate::byte_size::BYTE_SIZE_PATTERN;
use crate::form::WORKERS_MAX;
use crate::trunk::VLANS_PATTERN;
use crate::{Form, ResourceKind};

/// Control characters according to `char::is_control`, for use in a character class.
const CONTROL: &str = r"\x00-\x1f\x7f-\x9f";
/// One label of a host name (RFC 1123, section 2.1).
const LABEL: &str = "[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?";
const IPV4: &str = r"[0-9]{1,3}(\.[0-9]{1,3}){3}";
/// Content of the brackets of an IPv6 address. The daemon checks the groups.
const IPV6: &str = "[0-9A-Fa-f:.%]+";
const DEVICE: &str = r"[^\s/:%\x00-\x1f\x7f-\x9f]{1,15}";
const PCI_ADDRESS: &str = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]";

impl Form {
    /// Returns the schema of the form's values. Tables become references to their components.
    pub fn schema(self) -> RefOr<Schema> {
        match self {
            Self::Name => component_reference("Name"),
            Self::Names { max: most } => list(component_reference("Name"), most, false),
            Self::HostName => text(&anchored(LABEL)),
            Self::NetworkDevice => text(&anchored(DEVICE)),
            Self::Adapter => text(&anchored(&format!("({DEVICE}|{PCI_ADDRESS})"))),
            Self::NetworkNamespace => long_text(&anchored(&format!("[^/{CONTROL}]+")), 255),
            Self::UnixSocketPath => long_text(r"^/([^\x00]*[^/\x00])$", 107),
            Self::FilePath => long_text(r"^/[^\x00]*$", 4095),
            Self::SocketAddress => text(&format!(r"^({IPV4}|\[{IPV6}\]):[0-9]{{1,5}}$")),
            Self::LoopbackAddress => text(&format!(r"^(127{OCTETS}|\[{IPV6}\]):[0-9]{{1,5}}$")),
            Self::HostAndPort => text(&anchored(&host_and_port())),
            Self::Urls { max: most } => {
                list(text(&format!("^https?://{}$", host_and_port())), most, true)
            }
            Self::UnicastIps { max: most } => list(text(&format!("^({IPV4}|{IPV6})$")), most, true),
            Self::Accounts { max: most } => {
                let pattern = "^[!-+.0-9;-~][!-+.0-9;-~-]{0,254}$";
                list(text(pattern), most, true)
            }
            Self::DnsNames { max: most } => list(Self::DnsName.schema(), most, true),
            Self::DnsName => long_text(&format!(r"^{LABEL}(\.{LABEL})*$"), 253),
            Self::IpNetworks { max: most } => {
                list(text(&format!("^({IPV4}|{IPV6})(/[0-9]{{1,3}})?$")), most, true)
            }
            Self::UnicastMac => {
                let pair = "[0-9A-Fa-f]{2}";
                let first = "[0-9A-Fa-f][02468ACEace]";
                text(&format!("^{first}((:{pair}){{5}}|(-{pair}){{5}})$"))
            }
            Self::Vlan => number(1, 4094),
            Self::Vlans => list(vlan_range_schema(), usize::MAX, false),
            Self::Cpus => list(number(0, u64::from(u16::MAX)), WORKERS_MAX, true),
            Self::Number { min: least, max: most } => number(least, most),
            Self::NumberOrKeyword { min: least, max: most, keyword: word } => {
                either([number(least, most), name_choice(&[word])], None)
            }
            Self::Bytes { min: least, max: most, step } => byte_size_schema(least, most, step),
            Self::OneOfNumbers(numbers) => {
                let values: Vec<Value> = numbers.iter().map(|number| json!(number)).collect();
                of_type(Type::Integer).enum_values(Some(values)).into()
            }
            Self::StoreFile => {
                long_text(&format!("^[^/{CONTROL}]{{1,255}}(/[^/{CONTROL}]{{1,255}})*$"), 1023)
            }
            Self::Serial { max: most } => {
                let inner = most.saturating_sub(2);
                text(&format!("^[!-~]([ -~]{{0,{inner}}}[!-~])?$"))
            }
            Self::SingleLineText { max: most } => long_text(&format!("^[^{CONTROL}]+$"), most),
            Self::Flag => of_type(Type::Boolean).into(),
            Self::OneOfKeywords(names) => name_choice(names),
            Self::Table(kind) => component_reference(kind.schema_name()),
            Self::Tables(kind) => {
                ArrayBuilder::new().items(component_reference(kind.schema_name())).build().into()
            }
        }
    }
}

const OCTETS: &str = r"(\.[0-9]{1,3}){3}";

impl ResourceKind {
    /// Returns the name of the OpenAPI component that describes a table of this kind.
    pub const fn schema_name(self) -> &'static str {
        match self {
            Self::File => "HostConfig",
            Self::Host => "HostSection",
            Self::Api => "ApiConfig",
            Self::Console => "ConsoleConfig",
            Self::Lab => "LabConfig",
            Self::Power => "PowerConfig",
            Self::Cluster => "ClusterConfig",
            Self::Uplink => "UplinkConfig",
            Self::Team => "TeamConfig",
            Self::Switch => "SwitchConfig",
            Self::Nic => "NicConfig",
            Self::Store => "StoreConfig",
            Self::QosPolicy => "QosPolicyConfig",
            Self::Disk => "DiskConfig",
            Self::Vm => "VmConfig",
            Self::Pf => "PfConfig",
            Self::Node => "NodeConfig",
            Self::Offload => "OffloadConfig",
            Self::Vmq => "VmqConfig",
            Self::DiskQos => "DiskQos",
            Self::DiskVhostUser => "DiskVhostUser",
            Self::DiskNbd => "DiskNbd",
            Self::ClusterTls => "ClusterTls",
            Self::Vf => "VfConfig",
        }
    }
}

/// Returns a schema that also permits null.
pub(crate) fn nullable(schema: RefOr<Schema>) -> RefOr<Schema> {
    let null = || RefOr::from(Object::with_type(Type::Null));
    match schema {
        RefOr::T(Schema::Object(mut object)) => {
            object.schema_type = with_null(object.schema_type);
            if let Some(values) = &mut object.enum_values {
                values.push(Value::Null);
            }
            object.into()
        }
        RefOr::T(Schema::Array(mut array)) => {
            array.schema_type = with_null(array.schema_type);
            RefOr::T(Schema::Array(array))
        }
        RefOr::T(Schema::OneOf(mut one_of)) => {
            one_of.items.insert(0, null());
            RefOr::T(Schema::OneOf(one_of))
        }
        other => either([null(), other], None),
    }
}

fn with_null(schema_type: SchemaType) -> SchemaType {
    match schema_type {
        SchemaType::Type(single) => SchemaType::Array(vec![single, Type::Null]),
        SchemaType::Array(mut types) => {
            types.push(Type::Null);
            SchemaType::Array(types)
        }
        SchemaType::AnyValue => SchemaType::AnyValue,
    }
}

/// Adds a description and a default to a schema.
pub(crate) fn with_description(
    schema: RefOr<Schema>,
    description: &str,
    default: Option<Value>,
) -> RefOr<Schema> {
    match schema {
        RefOr::Ref(mut reference) if default.is_none() => {
            reference.description = description.to_owned();
            RefOr::Ref(reference)
        }
        RefOr::Ref(reference) => {
            let mut one_of = either_of([RefOr::Ref(reference)], Some(description));
            one_of.default = default;
            RefOr::T(Schema::OneOf(one_of))
        }
        RefOr::T(Schema::Object(mut object)) => {
            object.description = Some(description.to_owned());
            object.default = default;
            object.into()
        }
        RefOr::T(Schema::Array(mut array)) => {
            array.description = Some(description.to_owned());
            array.default = default;
            RefOr::T(Schema::Array(array))
        }
        RefOr::T(Schema::OneOf(mut one_of)) => {
            one_of.description = Some(description.to_owned());
            one_of.default = default;
            RefOr::T(Schema::OneOf(one_of))
        }
        other @ RefOr::T(_) => other,
    }
}

/// Returns the schema of a size: a number of bytes, or a text with a unit.
pub(crate) fn byte_size_schema(min: u64, max: u64, step: u64) -> RefOr<Schema> {
    let mut number = bounded(min, max);
    if step > 1 {
        number.multiple_of = Some(limit(step));
    }
    either([number.into(), text(BYTE_SIZE_PATTERN)], None)
}

/// Returns the schema of a VLAN id or a range of them.
pub(crate) fn vlan_range_schema() -> RefOr<Schema> {
    either([number(1, 4094), text(VLANS_PATTERN)], None)
}

/// Returns a reference to a component.
pub(crate) fn component_reference(name: &str) -> RefOr<Schema> {
    Ref::from_schema_name(name).into()
}

fn either<const N: usize>(items: [RefOr<Schema>; N], description: Option<&str>) -> RefOr<Schema> {
    RefOr::T(Schema::OneOf(either_of(items, description)))
}

fn either_of<const N: usize>(items: [RefOr<Schema>; N], description: Option<&str>) -> OneOf {
    let builder = OneOfBuilder::new().description(description);
    items.into_iter().fold(builder, OneOfBuilder::item).build()
}

fn of_type(schema_type: Type) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(schema_type)
}

fn name_choice(names: &[&str]) -> RefOr<Schema> {
    of_type(Type::String).enum_values(Some(names.iter().copied())).into()
}

fn number(min: u64, max: u64) -> RefOr<Schema> {
    bounded(min, max).into()
}

fn bounded(min: u64, max: u64) -> Object {
    let format = if i32::try_from(max).is_ok() { KnownFormat::Int32 } else { KnownFormat::Int64 };
    of_type(Type::Integer)
        .format(Some(SchemaFormat::KnownFormat(format)))
        .minimum(Some(limit(min)))
        .maximum(Some(limit(max)))
        .build()
}

fn limit(value: u64) -> utoipa::Number {
    utoipa::Number::UInt(usize::try_from(value).unwrap_or(usize::MAX))
}

fn text(pattern: &str) -> RefOr<Schema> {
    of_type(Type::String).pattern(Some(pattern)).into()
}

/// Returns the schema of a text of at most `max` bytes. A text has at most as many characters as
/// bytes.
fn long_text(pattern: &str, max: usize) -> RefOr<Schema> {
    of_type(Type::String).pattern(Some(pattern)).max_length(Some(max)).into()
}

fn list(items: RefOr<Schema>, max: usize, unique: bool) -> RefOr<Schema> {
    let mut list: Array = ArrayBuilder::new().items(items).unique_items(unique).build();
    list.min_items = Some(1);
    list.max_items = (max < usize::MAX).then_some(max);
    RefOr::T(Schema::Array(list))
}

fn anchored(pattern: &str) -> String {
    format!("^{pattern}$")
}

fn host_and_port() -> String {
    format!(r"({LABEL}(\.{LABEL})*|\[{IPV6}\]):[0-9]{{1,5}}")
}

#[cfg(test)]
#[path = "form_schema_tests.rs"]
pub(crate) mod tests;
