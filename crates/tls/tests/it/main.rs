//! Sessions with each other, through memory.

mod certificates;
mod old;
mod openssl;
mod pairs;
mod records;
mod trust;
