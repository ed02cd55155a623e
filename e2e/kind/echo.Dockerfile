# The pods of the cases; the program is built by `make e2e-kind` beside this file's context.
FROM scratch
COPY echo /echo
USER 65532
ENTRYPOINT ["/echo"]
