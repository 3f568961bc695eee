//! Integer parameters with a range.

use serde::de::{Deserialize, Deserializer, Error};
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, SchemaFormat, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{Number, PartialSchema, ToSchema};

/// Integer from `LEAST` to `MOST`. Deserialization checks the range, and the OpenAPI document
/// states it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BoundedInteger<const LEAST: u64, const MOST: u64>(u64);

/// Integer from 0 to the largest value of the OpenAPI format `int64`.
pub(super) type Count = BoundedInteger<0, { i64::MAX as u64 }>;

impl<const LEAST: u64, const MOST: u64> BoundedInteger<LEAST, MOST> {
    /// Returns the integer.
    pub(super) const fn value(self) -> u64 {
        self.0
    }
}

impl<'de, const LEAST: u64, const MOST: u64> Deserialize<'de> for BoundedInteger<LEAST, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Only digits are accepted, without a sign, so that each number has one notation.
        let text = String::deserialize(deserializer)?;
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        let number =
            text.parse().ok().filter(|number| is_number && (LEAST..=MOST).contains(number));
        number.map(Self).ok_or_else(|| {
            D::Error::custom(format!("must be a whole number from {LEAST} to {MOST}"))
        })
    }
}

impl<const LEAST: u64, const MOST: u64> PartialSchema for BoundedInteger<LEAST, MOST> {
    fn schema() -> RefOr<Schema> {
        let limit = |value: u64| Some(Number::UInt(usize::try_from(value).unwrap_or(usize::MAX)));
        ObjectBuilder::new()
            .schema_type(Type::Integer)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64)))
            .minimum(limit(LEAST))
            .maximum(limit(MOST))
            .into()
    }
}

impl<const LEAST: u64, const MOST: u64> ToSchema for BoundedInteger<LEAST, MOST> {}

#[cfg(test)]
mod tests {
    use axum::extract::Query;
    use axum::http::Uri;
    use serde::Deserialize;

    use super::BoundedInteger;

    #[derive(Deserialize)]
    struct Parameters {
        limit: Option<BoundedInteger<1, 300>>,
    }

    fn read(query: &str) -> Option<Option<u64>> {
        let uri: Uri = format!("/events{query}").parse().unwrap();
        let Query(read) = Query::<Parameters>::try_from_uri(&uri).ok()?;
        Some(read.limit.map(BoundedInteger::value))
    }

    #[test]
    fn a_number_is_read_in_its_range_and_in_one_notation() {
        assert_eq!(read(""), Some(None));
        for valid in [1, 20, 300] {
            assert_eq!(read(&format!("?limit={valid}")), Some(Some(valid)));
        }
        for bad in ["0", "301", "-1", "+1", "1.0", "1e1", "", "one", "18446744073709551616"] {
            assert_eq!(read(&format!("?limit={bad}")), None, "{bad}");
        }
    }
}
