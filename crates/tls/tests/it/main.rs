//! Sessions with each other, through memory.

mod certificates;
mod hellos;
mod old;
mod openssl;
mod pairs;
mod records;
mod resumption;
mod streams;
mod trust;
