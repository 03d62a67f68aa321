//! Integration tests of parts that others rely on, with the embedded store of the gateway.

mod it {
    mod aws_front;
}
