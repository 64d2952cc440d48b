#!/bin/sh
# The demo scenario in the containers: first through the API, then a look at the database and the index.
# The key is created and revoked inside the API's container, and each password stays in the container that has it.
set -eu
cd "$(dirname "$0")"
compose=${DOCKER_COMPOSE:-docker compose}

$compose exec -T etl_api node examples/cinema/demo.mjs

echo
echo "In the mart analytics.film_dim, the best films:"
$compose exec -T etl_db sh -c 'PGPASSWORD=$POSTGRES_PASSWORD psql -h 127.0.0.1 -U vitrina -d vitrina -c "
  SELECT title, rating, genres FROM analytics.film_dim ORDER BY rating DESC NULLS LAST, title LIMIT 3"'

echo "In the search index film_dim, a film by its misspelt title:"
$compose exec -T elasticsearch sh -c 'curl -fsS -u "elastic:$ELASTIC_PASSWORD" \
  "http://127.0.0.1:9200/film_dim/_search?filter_path=hits.total.value,hits.hits._source.title" \
  -H "content-type: application/json" -d "{ \"size\": 1, \"_source\": [\"title\"], \"query\": { \"match\":
    { \"title\": { \"query\": \"луный тилеграф\", \"fuzziness\": \"AUTO\", \"operator\": \"and\" } } } }"'
echo
