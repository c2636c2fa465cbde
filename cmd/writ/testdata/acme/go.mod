module example.com/acme

go 1.26.8

require aob.dev/writ v0.0.0

replace aob.dev/writ => ../../../..
