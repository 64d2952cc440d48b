from vitrina_tasks import task


@task(name="copy_row_py", description="Copies each row.")
def copy_row(rows, params):
    return [dict(row) for row in rows]
