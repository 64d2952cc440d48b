#!/bin/sh
# Writes .env from .env.sample, with a random secret for every empty value. Never changes an existing one.
set -eu
cd "$(dirname "$0")"
[ ! -e .env ] || exit 0
umask 077
while IFS= read -r line; do
  case "$line" in
    [A-Z]*=) printf '%s%s\n' "$line" "$(od -An -N24 -tx1 /dev/urandom | tr -d ' \n')" ;;
    *) printf '%s\n' "$line" ;;
  esac
done <.env.sample >.env.new
mv .env.new .env
echo "Created deploy/.env with random secrets."
