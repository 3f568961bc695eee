//! Teams: what drives them, and how they stand.

mod status;
